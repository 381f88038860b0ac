#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/kinds.h"

struct redisContext;

namespace lockbench::test {

// Everything here throws std::runtime_error if a server is not available: without servers nothing
// is tested.

/// A user of the shared server that may only read and write keys and use channels below lockbench:,
/// run scripts, and ask for the time.
inline constexpr std::string_view kPlainUser = "plain";
inline constexpr std::string_view kPlainPassword = "se:cr/et@%1";
inline constexpr std::string_view kPlainPasswordInUrl = "se%3Acr%2Fet%40%251";

/// Ends with the program, together with its servers.
testbed::Testbed& shared_testbed();
/// A Redis without persistence, with the unix socket "socket" in its data folder and the user
/// above. Starts on first use and ends with the program. Leave it running.
testbed::Server& shared_redis();
/// For tests that kill, freeze or configure it.
std::unique_ptr<testbed::Server> own_redis(testbed::RedisOptions options = {});
/// Whether INFO replication has this line, such as "role:slave"; false without an answer.
bool says_of_replication(const testbed::Server& server, std::string_view line);
/// The message that answers one on this subject of a NATS, with its headers. Only without TLS, as
/// the server begins without.
tl::expected<std::string, std::string> ask_nats(const testbed::Server& server,
                                                std::string_view subject,
                                                std::string_view payload = {});
/// A port on which nothing listens.
std::uint16_t closed_port();

/// The lines without their ends.
std::vector<std::string> lines_of(std::string_view text);

struct ContextDeleter {
  void operator()(redisContext* context) const;
};
using ContextPtr = std::unique_ptr<redisContext, ContextDeleter>;

/// Looks into a server of the shared testbed, independently of the code under test. For one thread.
class RedisProbe {
 public:
  explicit RedisProbe(std::uint16_t port, int database = 0);

  /// The answer to one command: a number, a text, or the lines of a list; empty for nil.
  std::string ask(const std::vector<std::string>& command);
  std::vector<std::string> keys();
  std::string get(const std::string& key) { return ask({"GET", key}); }
  bool exists(const std::string& key) { return ask({"EXISTS", key}) == "1"; }
  /// Nothing for a key that does not expire or is not there.
  std::optional<std::chrono::milliseconds> time_to_live(const std::string& key);
  void remove(const std::vector<std::string>& keys);
  /// How often the server has executed the command ("del") since its start.
  long long calls_of(std::string_view command);
  /// Number of connections, without this one.
  int other_connections();

 private:
  ContextPtr context_;
};

/// One command as the server saw it.
struct SeenCommand {
  int database = 0;
  std::vector<std::string> words;  ///< the first one in capitals
};

/// Sees every command that reaches a server, by MONITOR. For one thread.
class RedisMonitor {
 public:
  explicit RedisMonitor(std::uint16_t port);
  /// The commands since the last call, in full, without those of scripts.
  std::vector<SeenCommand> take_whole() { return read(false); }
  /// The first words of these, without logins.
  std::vector<std::string> take() { return names_of(read(false)); }
  /// The same including commands of scripts.
  std::vector<std::string> take_with_scripts() { return names_of(read(true)); }

 private:
  std::vector<SeenCommand> read(bool with_scripts);
  static std::vector<std::string> names_of(const std::vector<SeenCommand>& commands);

  RedisProbe marker_;
  ContextPtr context_;
  int marks_ = 0;
};

}  // namespace lockbench::test
