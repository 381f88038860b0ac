#include <fmt/format.h>

#include <utility>

#include "strategies/carrier.h"
#include "strategies/thread.h"
#include "watch/sources/redis_assembly.h"
#include "watch/sources/sources.h"

namespace lockbench::watch {
namespace {

class RedisQuorum : public Source {
 public:
  RedisQuorum(std::vector<std::unique_ptr<Source>> nodes, std::uint64_t most_locks)
      : nodes_(std::move(nodes)), most_locks_(most_locks) {
    for (const auto& node : nodes_) {
      endpoint_ += fmt::format("{}{}", endpoint_.empty() ? "" : ",", node->endpoint());
    }
  }

  const std::string& endpoint() const override { return endpoint_; }

  /// A minority of the nodes may be missing.
  tl::expected<void, std::string> reach(const std::stop_token& stop) override {
    std::size_t failed = 0;
    for (const auto& node : nodes_) {
      auto reached = node->reach(stop);
      if (!reached && 2 * ++failed >= nodes_.size()) return reached;
    }
    return {};
  }

  void run(Sink& sink, const std::stop_token& stop) override {
    constexpr Duration kPace = std::chrono::milliseconds(20);
    Assembly assembly(sink, endpoint_, nodes_.size(), most_locks_);
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Source& source = *nodes_[i];
      Assembly::Node& node = assembly.node(i);
      const auto failed = [&source, &node](const std::string& why) {
        node.blind(source.endpoint(), BootClock::now(), why);
      };
      auto thread = Thread::start(
          [&source, &node](const std::stop_token& over) { source.run(node, over); }, failed);
      if (thread) {
        threads.push_back(*std::move(thread));
      } else {
        failed(thread.error());
      }
    }
    while (!stop.stop_requested()) {
      Carrier::current().wait(nullptr, BootClock::now() + kPace, stop);
      assembly.settle(BootClock::now());
    }
  }

  std::uint64_t commands() const override {
    std::uint64_t all = 0;
    for (const auto& node : nodes_) all += node->commands();
    return all;
  }

 private:
  const std::vector<std::unique_ptr<Source>> nodes_;
  const std::uint64_t most_locks_;
  std::string endpoint_;
};

}  // namespace

Made make_redis_quorum(const Urls& urls, const Request& request) {
  std::vector<std::unique_ptr<Source>> nodes;
  for (const std::string& url : urls) {
    auto node = make_redis_source({url}, request);
    if (!node) return node;
    nodes.push_back(*std::move(node));
  }
  return std::make_unique<RedisQuorum>(std::move(nodes), request.most_locks);
}

}  // namespace lockbench::watch
