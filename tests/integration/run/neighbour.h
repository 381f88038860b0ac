#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::test {

/// Runs this in a child process, as another user of the machine, and returns what it returns. Needs
/// root.
std::string as_neighbour(const std::function<std::string()>& attempt);

/// A line for each of these requests whose answer has none of the refusals in it.
std::string not_refused(std::uint16_t port, const std::vector<std::string>& requests,
                        const std::vector<std::string_view>& refusals);

/// One request to ZooKeeper in its own protocol: its number and its body.
struct ZookeeperRequest {
  int type = 0;
  std::string body;
};
namespace zookeeper_requests {
ZookeeperRequest create(std::string_view path);
ZookeeperRequest remove(std::string_view path);
ZookeeperRequest get(std::string_view path);
ZookeeperRequest set(std::string_view path);
ZookeeperRequest children(std::string_view path);
ZookeeperRequest open_to_all(std::string_view path);
}  // namespace zookeeper_requests

struct ZookeeperReply {
  int code = -1;  ///< 0: done
  std::string body;

  /// Of children().
  std::vector<std::string> names() const;
};
/// In a session of its own, after authentication by "user:password" unless that is empty. Throws
/// std::runtime_error without an answer.
std::vector<ZookeeperReply> ask_zookeeper(std::uint16_t port, std::string_view login,
                                          const std::vector<ZookeeperRequest>& requests);

}  // namespace lockbench::test
