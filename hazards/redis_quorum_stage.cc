#include <thread>

#include "hazards/redis_stage.h"

namespace lockbench::hazards {
namespace {

constexpr std::size_t kNodes = 5;

/// Five Redis that know nothing of each other. The ground that was asked for is the first one's:
/// what befalls "the server" befalls one node.
class QuorumStage : public Stage {
 public:
  tl::expected<void, std::string> open(House& house, Ground ground) {
    const Ground others = ground == Ground::durable ? Ground::durable : Ground::volatile_;
    std::vector<tl::expected<void, std::string>> opened(kNodes);
    std::vector<std::unique_ptr<RedisStage>> nodes;
    for (std::size_t i = 0; i < kNodes; ++i) {
      nodes.push_back(std::make_unique<RedisStage>(i == 0 ? ground : others, 0));
    }
    {
      std::vector<std::jthread> starting;
      for (std::size_t i = 0; i < kNodes; ++i) {
        starting.emplace_back(
            [&house, &node = *nodes[i], &result = opened[i]] { result = node.open(house); });
      }
    }
    for (const auto& result : opened) {
      if (!result) return result;
    }
    nodes_ = std::move(nodes);
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    auto through = ports();
    if (port != 0) through.front() = port;
    return endpoints_through(through);
  }
  Endpoints endpoints_through(const std::vector<std::uint16_t>& lines) const override {
    Endpoints all;
    for (std::size_t i = 0; i < kNodes; ++i) {
      all["redis"].push_back(nodes_[i]->endpoints(lines.at(i)).at("redis").front());
    }
    return all;
  }
  std::uint16_t port() const override { return nodes_.front()->port(); }
  std::vector<std::uint16_t> ports() const override {
    std::vector<std::uint16_t> all;
    for (const auto& node : nodes_) all.push_back(node->port());
    return all;
  }

  std::string struck() const override { return "one of its five nodes"; }
  std::string value_of(const std::string& key) override { return nodes_.front()->value_of(key); }
  void restart() override { nodes_.front()->restart(); }
  void jump_clock(Duration ahead) override { nodes_.front()->jump_clock(ahead); }
  void fill_memory(const std::string& key) override { nodes_.front()->fill_memory(key); }
  void cut_replication() override { nodes_.front()->cut_replication(); }
  void fail_over() override { nodes_.front()->fail_over(); }
  void kill_node(std::size_t node) override { need(nodes_.at(node)->server().kill_hard()); }
  void freeze_node(std::size_t node) override { need(nodes_.at(node)->server().freeze()); }
  void revive_node(std::size_t node) override { need(nodes_.at(node)->server().restart(false)); }

 private:
  std::vector<std::unique_ptr<RedisStage>> nodes_;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  auto stage = std::make_shared<QuorumStage>();
  auto opened = stage->open(house, ground);
  if (!opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("redis-quorum", make_stage);

}  // namespace
}  // namespace lockbench::hazards
