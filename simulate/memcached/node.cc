#include "simulate/memcached/node.h"

#include <fmt/format.h>

#include <utility>

namespace lockbench::simulate {
namespace {

// The server reads its clock by a timer of a second, which it sets again each time. libevent waits
// in whole milliseconds.
constexpr Duration kTick = std::chrono::milliseconds(1001);
// As much less than Redis's as in results/reference/alone.json; its threads are modelled as one.
constexpr Duration kPerCommand = std::chrono::microseconds(3);

}  // namespace

/// A connection's end at the server.
struct MemcachedNode::Client : Wire::Session {
  std::string input;
  bool ready = false;  ///< it waits for its turn
};

MemcachedNode::MemcachedNode(World& world, Network& network, int its_number, int its_region)
    : StoreServer(world, network, "memcached", its_number, its_region), started_(world.now()) {}

std::unique_ptr<Wire::Session> MemcachedNode::open_session() const {
  return std::make_unique<Client>();
}

bool MemcachedNode::take(const std::shared_ptr<Wire>& wire, std::string_view bytes) {
  auto& client = static_cast<Client&>(*wire->session);
  client.input += bytes;
  return !std::exchange(client.ready, true);
}

void MemcachedNode::work(const std::shared_ptr<Wire>& wire) {
  auto& client = static_cast<Client&>(*wire->session);
  client.ready = false;
  std::string answers;
  // Bounded by what has arrived.
  while (true) {
    const std::string line =
        world_.traced() ? client.input.substr(0, client.input.find('\r')) : std::string();
    const auto answer = data_.execute(client.input, second());
    if (!answer) break;
    spend(kPerCommand);
    answers += *answer;
    if (world_.traced()) {
      world_.trace("memcached", number,
                   fmt::format("executes \"{}\" of client-{}", line, wire->host.number));
    }
  }
  if (!answers.empty()) wire->answer(std::move(answers), done_at());
}

std::int64_t MemcachedNode::second() const {
  const TimePoint read = started_ + (world_.now() - started_) / kTick * kTick;
  const auto count = [&](TimePoint time) {
    return std::chrono::floor<std::chrono::seconds>(clock.now(time).time_since_epoch()).count();
  };
  return MemcachedModel::kFirstSecond + count(read) - count(started_);
}

void MemcachedNode::restart() {
  if (alive()) return;
  come_back();
  data_ = {};
  started_ = world_.now();
}

bool MemcachedNode::evict(bool /*only_volatile*/) {
  return data_.evict([this] { return world_.random()(); });
}

bool MemcachedNode::remove(const std::string& key) {
  std::string command = fmt::format("delete {}\r\n", key);
  return data_.execute(command, second()) == "DELETED\r\n";
}

}  // namespace lockbench::simulate
