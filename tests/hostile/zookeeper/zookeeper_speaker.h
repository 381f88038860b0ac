#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/hostile_server.h"

namespace lockbench::test {

/// What an honest ZooKeeper has, and has answered. On the server's thread; read after its end, or
/// under the lock of its exchanges.
struct ZookeeperNodes {
  std::map<std::string, std::int64_t> owners;   ///< of each node; 0: persistent
  std::map<std::string, std::string> answered;  ///< rightly, by request
  std::mutex mutex;                             ///< of `answered`
  std::int64_t sessions = 0, transactions = 0;
  int sequence = 0;
};

/// One connection with an honest ZooKeeper.
class ZookeeperSpeaker : public Speaker {
 public:
  static constexpr std::int32_t kGetData = 4, kGetChildren = 8, kCreate2 = 15;

  explicit ZookeeperSpeaker(std::shared_ptr<ZookeeperNodes> nodes) : nodes_(std::move(nodes)) {}

  std::size_t request_length(std::string_view received) override;
  std::string answer(std::string_view request) override;

 private:
  std::string greet(std::string_view packet);
  std::string carry_out(std::string_view packet);

  const std::shared_ptr<ZookeeperNodes> nodes_;
  std::int64_t session_ = 0;
};

/// Of a request in its frame; 0 for a greeting.
std::int32_t operation_of(std::string_view request);

/// One of each kind of packet that a server may send, and some that none does.
std::vector<std::string> zookeeper_packets();

}  // namespace lockbench::test
