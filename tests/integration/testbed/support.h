#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "testbed/servers/kinds.h"
#include "testbed/servers/testbed.h"
#include "tests/support/eventually.h"
#include "tests/support/must.h"
#include "tests/support/processes.h"

namespace lockbench::testbed {

using test::eventually;
using test::look_at;
using test::must;

/// Whether no process, not even a zombie, has this pid.
bool pid_is_gone(pid_t pid);

/// The first line of the answer to `request`, without its end; an error when there is none in time.
tl::expected<std::string, std::string> ask_line(std::uint16_t port, std::string_view request,
                                                std::chrono::milliseconds within);

/// The answer to one inline Redis command, or "error: ..." when there is none.
std::string ask(std::uint16_t port, const std::string& command);

/// psql's output, or "error: ..." with its complaint.
std::string psql(const Server& server, const std::string& sql);
/// The same of the client of MariaDB.
std::string mariadb(const Server& server, const std::string& sql);

/// Writes and reads "k" (in base 64) as etcd's superuser. Returns the answer, or the reason why
/// there is none.
std::string put_into_etcd(const Server& server);
std::string get_from_etcd(const Server& server);

/// The first line of memcached's answer, or "error: ..." when there is none.
std::string ask_memcached(const Server& server, const std::string& command);

/// JetStream's answer, or "error: ..." when there is none.
std::string ask_nats(const Server& server, const std::string& request,
                     const std::string& payload = {});

/// Starts a testbed, or fails the test.
std::unique_ptr<Testbed> must_start();
/// Allows connections without login.
RedisOptions open_to_all(RedisOptions options = {});
std::unique_ptr<Server> must_start_redis(Testbed& testbed, const RedisOptions& options = {});

}  // namespace lockbench::testbed
