#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockbench::test {

/// Looks into a memcached of the shared testbed past the code under test, in its text protocol. For
/// one thread. Throws
/// std::runtime_error where no answer comes.
class MemcachedProbe {
 public:
  explicit MemcachedProbe(std::uint16_t port);
  MemcachedProbe(const MemcachedProbe&) = delete;
  MemcachedProbe& operator=(const MemcachedProbe&) = delete;
  ~MemcachedProbe();

  /// Sends one command, whose answer ends with a line of this beginning, or one of several with |
  /// between; its lines.
  std::vector<std::string> ask(const std::string& command, const std::string& last);
  std::vector<std::string> keys();
  /// Seconds until the item expires, rounded up; nothing if it is not there.
  std::optional<int> time_to_live(const std::string& key);
  std::map<std::string, std::string> stats();

 private:
  const int socket_;
};

}  // namespace lockbench::test
