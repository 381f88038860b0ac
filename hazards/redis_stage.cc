#include "hazards/redis_stage.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockbench::hazards {

tl::expected<void, std::string> RedisStage::open(House& house) {
  testbed::RedisOptions options;
  options.durable = ground_ == Ground::durable;
  options.max_clients = 1000;
  if (ground_ == Ground::durable) options.config = {"appendfsync always"};
  if (ground_ == Ground::cramped) options.config = {"maxmemory-policy volatile-ttl"};
  if (ground_ == Ground::clocked) {
    auto clock = testbed::ClockShim::make(house.testbed(), house.options().clock_shim);
    if (!clock) return tl::unexpected(clock.error());
    clock_ = *std::move(clock);
    options.clock = clock_.get();
  }
  const bool has_heir = ground_ == Ground::replicated || ground_ == Ground::watched;
  if (replicas_ > 0 || has_heir) return open_group(house, options);
  auto server = testbed::start_redis(house.testbed(), options);
  if (!server) return tl::unexpected(server.error());
  server_ = *std::move(server);
  return {};
}

tl::expected<void, std::string> RedisStage::open_group(House& house,
                                                       const testbed::RedisOptions& options) {
  testbed::RedisGroupOptions group{.replicas = std::max(replicas_, 1), .server = options};
  const bool watched = ground_ == Ground::watched;
  if (ground_ == Ground::replicated || watched) {
    auto proxies = testbed::ProxyPool::start();
    if (!proxies) return tl::unexpected(proxies.error());
    proxies_ = *std::move(proxies);
    group.proxies = proxies_.get();
    // Sentinels see to it that replicas follow the very address that they watch.
    group.proxy_each = !watched;
  }
  auto started = testbed::start_redis_group(house.testbed(), group);
  if (!started) return tl::unexpected(started.error());
  group_ = *std::move(started);
  if (!watched) return {};
  testbed::Proxy& line = *group_->replication();
  replication_ = line.counts().accepted;
  auto sentinels = testbed::start_sentinels(house.testbed(), {.primary = line.port()});
  if (!sentinels) return tl::unexpected(sentinels.error());
  sentinels_ = *std::move(sentinels);
  return {};
}

Endpoints RedisStage::endpoints(std::uint16_t port) const {
  if (sentinels_ && port == 0) return {{"redis", {sentinels_->url()}}};
  return {{"redis", {fmt::format("redis://127.0.0.1:{}", port != 0 ? port : this->port())}}};
}

testbed::RedisServer& RedisStage::server() const {
  if (!group_) return *server_;
  return failed_over_ ? group_->replica(0) : group_->primary();
}

void RedisStage::restart() {
  need(server().kill_hard());
  need(server().restart(ground_ == Ground::durable));
  if (group_) need(group_->await_in_step());
}

void RedisStage::fill_memory(const std::string& key) {
  constexpr std::uint64_t kRoom = 1 << 20;
  const std::string info = ask({"INFO", "memory"}).text;
  const std::size_t at = info.find("used_memory:");
  if (at == std::string::npos) throw StageFailure("redis does not tell its memory");
  const auto used = std::stoull(info.substr(at + std::string_view("used_memory:").size()));
  ask({"CONFIG", "SET", "maxmemory", std::to_string(used + kRoom)});
  const std::string filling(1024, 'x');
  for (std::uint64_t i = 0; i < 8 * kRoom / filling.size(); ++i) {
    // What was there first and dies first is what volatile-ttl lets go.
    ask({"SET", fmt::format("filling:{}", i), filling, "EX", "86400"});
    if (i % 64 == 0 && ask({"EXISTS", key}).is_integer(0)) return;
  }
}

void RedisStage::cut_replication() {
  if (sentinels_) {
    group_->replication()->hold(testbed::Direction::both,
                                testbed::Connections::number(replication_));
    return;
  }
  for (std::size_t i = 0; i < group_->replicas(); ++i) group_->replication(i)->hold();
}

void RedisStage::fail_over() {
  need(group_->primary().kill_hard());
  if (sentinels_) {
    need(sentinels_->await_master(group_->replica(0).port(), std::chrono::seconds(30)));
  } else {
    need(group_->promote(0));
    need(group_->rally(0));
  }
  failed_over_ = true;
}

redis::Reply RedisStage::ask(std::initializer_list<std::string_view> command) {
  const std::scoped_lock lock(mutex_);
  if (!connection_) {
    const auto endpoint = redis::parse_endpoint(server().url());
    connection_ = redis::make_hiredis_factory()->make(*endpoint, std::chrono::seconds(5), *env_);
  }
  auto reply = connection_->call(command);
  if (!reply) throw StageFailure(reply.error().message);
  return *std::move(reply);
}

namespace {

template <int kReplicas>
tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  auto stage = std::make_shared<RedisStage>(ground, kReplicas);
  if (auto opened = stage->open(house); !opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration single("redis", make_stage<0>);
const StageRegistration replicated("redis-replicated", make_stage<2>);

}  // namespace
}  // namespace lockbench::hazards
