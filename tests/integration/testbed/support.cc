#include "tests/integration/testbed/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "testbed/servers/kinds.h"
#include "testbed/servers/ports.h"
#include "tests/support/etcd_gateway.h"
#include "tests/support/output_of.h"
#include "tests/support/servers.h"

namespace lockbench::testbed {
namespace {

std::string ask_etcd(const Server& server, std::string_view path, std::string_view body) {
  try {
    return test::EtcdGateway(server.port(), kEtcdRoot, server.secret()).ask(path, body);
  } catch (const std::runtime_error& refused) {
    return refused.what();
  }
}

}  // namespace

bool pid_is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

tl::expected<std::string, std::string> ask_line(std::uint16_t port, std::string_view request,
                                                std::chrono::milliseconds within) {
  constexpr std::string_view kLineEnds = "\r\n";
  const auto whole = [&](std::string_view text) {
    return text.find_first_of(kLineEnds) != std::string_view::npos;
  };
  auto answer = ask_until(port, request, within, whole);
  if (answer) answer->resize(std::min(answer->size(), answer->find_first_of(kLineEnds)));
  return answer;
}

std::string ask(std::uint16_t port, const std::string& command) {
  const auto answer = ask_line(port, command + "\r\n", test::kPatience);
  return answer ? *answer : "error: " + answer.error();
}

std::string psql(const Server& server, const std::string& sql) {
  setenv("PGPASSWORD", server.secret().c_str(), 1);
  auto [text, status] = test::output_of(fmt::format(
      "timeout {} psql -XAtq 'host=127.0.0.1 port={} user={} dbname=postgres' -c \"{}\" 2>&1",
      test::kPatience.count(), server.port(), kSuperuser, sql));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return status == 0 ? text : "error: " + text;
}

std::string mariadb(const Server& server, const std::string& sql) {
  setenv("MYSQL_PWD", server.secret().c_str(), 1);
  auto [text, status] = test::output_of(
      fmt::format("timeout {} mariadb --no-defaults -N -B --host=127.0.0.1 --port={} --user={} "
                  "--execute=\"{}\" 2>&1",
                  test::kPatience.count(), server.port(), kUser, sql));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return status == 0 ? text : "error: " + text;
}

std::string put_into_etcd(const Server& server) {
  return ask_etcd(server, "/v3/kv/put", R"({"key":"aw==","value":"dg=="})");
}

std::string get_from_etcd(const Server& server) {
  return ask_etcd(server, "/v3/kv/range", R"({"key":"aw=="})");
}

std::string ask_memcached(const Server& server, const std::string& command) {
  const auto answer =
      ask_memcached(server, command + "\r\n", test::kPatience,
                    [](std::string_view text) { return text.find("\r\n") != text.npos; });
  return answer ? answer->substr(0, answer->find("\r\n")) : "error: " + answer.error();
}

std::string ask_nats(const Server& server, const std::string& request, const std::string& payload) {
  const auto answer = test::ask_nats(server, "$JS.API." + request, payload);
  return answer ? *answer : "error: " + answer.error();
}

std::unique_ptr<Testbed> must_start() { return must(Testbed::start()); }

RedisOptions open_to_all(RedisOptions options) {
  options.config.emplace_back("user default on nopass ~* &* +@all");
  return options;
}

std::unique_ptr<Server> must_start_redis(Testbed& testbed, const RedisOptions& options) {
  return must(start_redis(testbed, open_to_all(options)));
}

}  // namespace lockbench::testbed
