#pragma once

#include <string>

#include "strategies/duration.h"
#include "strategies/postgres/client/session.h"

namespace lockbench::postgres {

/// Makes all that the locks of a run keep, unless it is there: a sequence for fencing numbers, a
/// table of rows to lock, and a table of leases. Safe for many at once. Also sets what our
/// statements rely on, whatever the user's own defaults are.
Statement make_schema(const std::string& schema, Duration timeout);

}  // namespace lockbench::postgres
