#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/servers.h"

namespace lockbench::test {

/// One command as the server saw it.
struct SeenCommand {
  int database = 0;
  std::vector<std::string> words;  ///< the first in capitals

  /// The words that are keys; empty for commands that have none. Throws std::runtime_error for a
  /// command that lockbench has no reason to send.
  std::vector<std::string> keys() const;
};

/// Every command that reaches a server, by MONITOR, in full; what scripts do apart. For one thread.
class CommandLog {
 public:
  explicit CommandLog(std::uint16_t port);
  /// What came since the last call.
  std::vector<SeenCommand> take();

 private:
  RedisProbe marker_;
  ContextPtr context_;
  int marks_ = 0;
};

/// How often the server has carried out the command ("del") since its start.
long long calls_of(RedisProbe& probe, std::string_view command);

}  // namespace lockbench::test
