#include <utility>

#include "strategies/carrier.h"
#include "strategies/thread.h"
#include "watch/sources/redis_assembly.h"
#include "watch/sources/redis_source.h"

namespace lockbench::watch {
namespace {

std::string joined(const std::vector<redis::Endpoint>& nodes) {
  std::string all;
  for (const redis::Endpoint& node : nodes) all += (all.empty() ? "" : ",") + node.display();
  return all;
}

class NodeSink : public Sink {
 public:
  NodeSink(Assembly& assembly, std::size_t node) : assembly_(assembly), node_(node) {}

  void facts(const SourceFacts& facts) override { assembly_.facts(node_, facts); }
  void seen(const std::string& /*endpoint*/, Sighting sighting) override {
    assembly_.seen(node_, sighting);
  }
  void proposed(const std::string& /*endpoint*/, std::string pattern, Shape shape) override {
    assembly_.proposed(std::move(pattern), shape);
  }
  void blind(const std::string& /*endpoint*/, TimePoint at, std::string reason) override {
    assembly_.blind(node_, at, reason);
  }
  void sees(const std::string& /*endpoint*/, TimePoint at) override { assembly_.sees(node_, at); }
  void told_all(const std::string& /*endpoint*/) override { assembly_.told_all(node_); }
  void missed(const std::string& /*endpoint*/, std::uint64_t changes, std::string reason) override {
    assembly_.missed(changes, std::move(reason));
  }

 private:
  Assembly& assembly_;
  const std::size_t node_;
};

class RedisQuorum : public Source {
 public:
  RedisQuorum(const std::vector<redis::Endpoint>& nodes, const Request& request)
      : endpoint_(joined(nodes)), most_locks_(request.most_locks) {
    for (const redis::Endpoint& node : nodes) nodes_.push_back(make_redis_source(node, request));
  }

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
    std::vector<NodeSink> sinks;
    sinks.reserve(nodes_.size());
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      NodeSink& own = sinks.emplace_back(assembly, i);
      const auto failed = [&assembly, i](const std::string& why) {
        assembly.blind(i, BootClock::now(), why);
      };
      auto thread = Thread::start(
          [this, i, &own](const std::stop_token& over) { nodes_[i]->run(own, over); }, failed);
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
  const std::string endpoint_;
  const std::uint64_t most_locks_;
  std::vector<std::unique_ptr<Source>> nodes_;
};

}  // namespace

std::unique_ptr<Source> make_redis_quorum(const std::vector<redis::Endpoint>& nodes,
                                          const Request& request) {
  return std::make_unique<RedisQuorum>(nodes, request);
}

}  // namespace lockbench::watch
