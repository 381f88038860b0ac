#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "watch/source.h"

namespace lockbench::watch {

/// The error says what is wrong with the URL or the request.
using Made = tl::expected<std::unique_ptr<Source>, std::string>;

/// The locks of one etcd cluster.
Made make_etcd_source(const std::string& url, const Request& request);
/// The advisory locks, contended rows and lock tables of one PostgreSQL database. It runs nothing
/// but SELECT, in read-only transactions, and leaves no setting behind: it may come through a
/// pooler.
Made make_postgres_source(const std::string& url, const Request& request);
/// The locks of one Redis.
Made make_redis_source(const std::string& url, const Request& request);
/// The locks of one ZooKeeper ensemble.
Made make_zookeeper_source(const std::string& url, const Request& request);

}  // namespace lockbench::watch
