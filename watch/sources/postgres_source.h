#pragma once

#include <memory>

#include "strategies/postgres/client/endpoint.h"
#include "watch/source.h"

namespace lockbench::watch {

/// The advisory locks, contended rows and lock tables of one PostgreSQL database. It runs nothing
/// but SELECT, in read-only transactions, and leaves no setting behind: it may come through a
/// pooler.
std::unique_ptr<Source> make_postgres_source(postgres::Endpoint endpoint, const Request& request);

}  // namespace lockbench::watch
