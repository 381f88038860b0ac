#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "watch/source.h"

namespace lockbench::watch {

using Urls = std::vector<std::string>;
/// The error says what is wrong with the URLs or the request.
using Made = tl::expected<std::unique_ptr<Source>, std::string>;

/// The locks of one etcd cluster.
Made make_etcd_source(const Urls& urls, const Request& request);
/// The locks of one memcached whose keys the request names.
Made make_memcached_source(const Urls& urls, const Request& request);
/// The advisory locks, contended rows and lock tables of one PostgreSQL database. It runs nothing
/// but SELECT, in read-only transactions, and leaves no setting behind: it may come through a
/// pooler.
Made make_postgres_source(const Urls& urls, const Request& request);
/// The locks of one Redis; or those of several independent nodes on which locks are taken by a
/// majority.
Made make_redis_source(const Urls& urls, const Request& request);
Made make_redis_quorum(const Urls& urls, const Request& request);
/// The locks of one ZooKeeper ensemble.
Made make_zookeeper_source(const Urls& urls, const Request& request);

}  // namespace lockbench::watch
