// Servers that give wrong answers, at each point of every lock on ZooKeeper.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"
#include "tests/support/zookeeper_bytes.h"

namespace lockbench::test {
namespace {

using jute::number;
using jute::number_at;
using jute::text;

constexpr std::int32_t kDelete = 2, kExists = 3, kGetData = 4, kGetChildren = 8, kSync = 9,
                       kCreate2 = 15, kCreateContainer = 19, kClose = -11;
constexpr std::int32_t kNoNode = -101, kNodeExists = -110, kNotEmpty = -111;

std::string stat(std::int64_t made_by, std::int64_t owner) {
  return number(made_by, 8) + std::string(36, '\0') + number(owner, 8) + std::string(16, '\0');
}

std::string reply(std::int32_t xid, std::int32_t error, const std::string& body = {}) {
  return text(number(xid, 4) + number(1, 8) + number(error, 4) + body);
}

std::string greeting(int timeout_ms, std::int64_t session, bool read_only) {
  return text(number(0, 4) + number(timeout_ms, 4) + number(session, 8) +
              text(std::string(16, 'p')) + number(read_only ? 1 : 0, 1));
}

/// The operation of a framed request; 0 for a greeting.
std::int32_t operation_of(std::string_view request) {
  // A greeting has the protocol version 0 in place of the request number.
  return number_at(request, 4, 4) == 0 ? 0 : static_cast<std::int32_t>(number_at(request, 8, 4));
}

/// The nodes and answers of an honest ZooKeeper. Used on the server's thread; read it after the
/// server's end, or under the lock of its exchanges.
struct ZookeeperNodes {
  std::map<std::string, std::int64_t> owners;   ///< of each node; 0: persistent
  std::map<std::string, std::string> answered;  ///< correct answers by request
  std::mutex mutex;                             ///< of `answered`
  std::int64_t sessions = 0, transactions = 0;
  int sequence = 0;
};

/// One connection with an honest ZooKeeper.
class ZookeeperSpeaker : public Speaker {
 public:
  explicit ZookeeperSpeaker(std::shared_ptr<ZookeeperNodes> nodes) : nodes_(std::move(nodes)) {}

  std::size_t request_length(std::string_view received) override {
    if (received.size() < 4) return 0;
    const std::size_t length = 4 + static_cast<std::size_t>(number_at(received, 0, 4));
    return received.size() < length ? 0 : length;
  }

  std::string answer(std::string_view request) override {
    const std::string_view packet = request.substr(4);
    std::string right = session_ == 0 ? greet(packet) : carry_out(packet);
    const std::scoped_lock lock(nodes_->mutex);
    nodes_->answered[std::string(request)] = right;
    return right;
  }

 private:
  std::string greet(std::string_view packet) {
    session_ = number_at(packet, 16, 8);
    if (session_ == 0) session_ = 0x1000 + ++nodes_->sessions;
    return greeting(static_cast<int>(number_at(packet, 12, 4)), session_, false);
  }

  std::string carry_out(std::string_view packet) {
    const auto xid = static_cast<std::int32_t>(number_at(packet, 0, 4));
    const auto operation = static_cast<std::int32_t>(number_at(packet, 4, 4));
    auto& owners = nodes_->owners;
    if (operation == kClose) {
      std::erase_if(owners, [this](const auto& node) { return node.second == session_; });
      return reply(xid, 0);
    }
    std::string path;
    if (operation > 0 && operation <= kCreateContainer && operation != 11) {
      path = packet.substr(12, static_cast<std::size_t>(number_at(packet, 8, 4)));
    }
    const auto children = [&] {
      std::vector<std::string> names;
      for (const auto& [node, owner] : owners) {
        if (node.starts_with(path + "/") && node.find('/', path.size() + 1) == std::string::npos) {
          names.push_back(node.substr(path.size() + 1));
        }
      }
      return names;
    };
    const std::string parent =
        path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    switch (operation) {
      case kCreate2:
      case kCreateContainer: {
        const std::int64_t mode = number_at(packet, packet.size() - 4, 4);
        if (!parent.empty() && !owners.contains(parent)) return reply(xid, kNoNode);
        if (mode == 3) path += fmt::format("{:010}", ++nodes_->sequence);
        if (owners.contains(path)) return reply(xid, kNodeExists);
        owners[path] = operation == kCreate2 ? session_ : 0;
        return reply(xid, 0, text(path) + stat(++nodes_->transactions, owners[path]));
      }
      case kDelete:
        if (!owners.contains(path)) return reply(xid, kNoNode);
        if (!children().empty()) return reply(xid, kNotEmpty);
        owners.erase(path);
        return reply(xid, 0);
      case kExists:
      case kGetData:
        if (!owners.contains(path)) return reply(xid, kNoNode);
        return reply(xid, 0,
                     (operation == kGetData ? number(-1, 4) : "") +
                         stat(nodes_->transactions, owners[path]));
      case kGetChildren: {
        if (!owners.contains(path)) return reply(xid, kNoNode);
        std::string body;
        const auto names = children();
        for (const std::string& name : names) body += text(name);
        return reply(xid, 0, number(static_cast<std::int64_t>(names.size()), 4) + body);
      }
      case kSync:
        return reply(xid, 0, text(path));
      default:
        return reply(xid, 0);
    }
  }

  const std::shared_ptr<ZookeeperNodes> nodes_;
  std::int64_t session_ = 0;
};

/// One of each kind of packet that a server may send, and some invalid ones.
std::vector<std::string> zookeeper_packets() {
  std::vector<std::string> packets = {
      greeting(10'000, 0x7777, false),
      greeting(10'000, 0x7777, true),
      greeting(0, 0, false),
      greeting(-1, 0x7777, false),
      greeting(2'147'483'647, 0x7777, false),
      reply(-2, 0),
      reply(-4, -115),
      reply(-8, -101),
      reply(99, 0),
      reply(0, 0),
      reply(-1, 0, number(2, 4) + number(3, 4) + text("/lockbench/hostile/{k}")),
      reply(-1, 0, number(99, 4) + number(3, 4) + text("/lockbench")),
      reply(-1, 0, number(2, 4)),
      text(""),
      text("x"),
      number(-1, 4),
      number(0x7fffffff, 4),
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      std::string(64, '\xff'),
  };
  // The numbers of the first requests, and of creation and release.
  for (const std::int32_t xid : {1, 2, 6, 7, 8}) {
    for (const std::int32_t error : {0, -4, kNoNode, -102, kNodeExists, -112, -115, -118, 4711}) {
      packets.push_back(reply(xid, error));
    }
    packets.push_back(reply(xid, 0, text("/lockbench/hostile/{k}/x-0000000000") + stat(1, 1)));
    packets.push_back(reply(xid, 0, text("") + stat(1, 1)));
    packets.push_back(reply(xid, 0, number(0, 4)));
    packets.push_back(reply(xid, 0, number(0x7fffffff, 4) + text("a")));
    packets.push_back(reply(xid, 0, number(-7, 4)));
    packets.push_back(reply(xid, 0, number(2, 4) + text("a/b") + text("")));
    packets.push_back(reply(xid, 0, number(1, 4) + text("zzzz-0000000001")));
    packets.push_back(reply(xid, 0, text("data") + stat(1, 1)));
    packets.push_back(reply(xid, 0, stat(1, 1)));
  }
  return packets;
}

using Exchanges = std::vector<HostileServer::Exchange>;

/// Whether the latest answer to this operation is correct.
bool was_right(ZookeeperNodes& nodes, const Exchanges& exchanges, std::int32_t operation) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (operation_of(exchange->request) != operation) continue;
    // After the frame, the number and the transaction.
    constexpr std::size_t kError = 16, kErrorSize = 4;
    const bool done =
        exchange->sent.substr(0, kError + kErrorSize).ends_with(std::string(kErrorSize, '\0'));
    const std::scoped_lock lock(nodes.mutex);
    return done && exchange->sent == nodes.answered[exchange->request];
  }
  return false;
}

class HostileZookeeper : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileZookeeper, GetsNoLockGrantedThatItDidNotGrant) {
  const auto make = [] {
    const auto nodes = std::make_shared<ZookeeperNodes>();
    const auto was_granted = [nodes](const Exchanges& exchanges) {
      const bool made = was_right(*nodes, exchanges, kCreate2);
      // Without a queue, a request whose answer was lost may have created the node.
      return GetParam()->traits.fair ? made && was_right(*nodes, exchanges, kGetChildren)
                                     : made || was_right(*nodes, exchanges, kGetData);
    };
    return Honest{[nodes] { return std::make_unique<ZookeeperSpeaker>(nodes); }, was_granted};
  };
  const std::vector<std::string> packets = zookeeper_packets();
  const std::vector<std::string> floods{packets.front(), "x", std::string(4, '\0')};
  expect_no_false_grants(*GetParam(), misdeeds(packets, floods), make, 2);
}

INSTANTIATE_TEST_SUITE_P(All, HostileZookeeper, testing::ValuesIn(strategies_of("zookeeper")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
