#include "hazards/stage.h"

#include <fmt/format.h>

#include "hazards/client_process.h"
#include "strategies/store.h"
#include "testbed/redis_server.h"

namespace lockbench::hazards {
namespace {

std::map<std::string, MakeStage, std::less<>>& makers() {
  static std::map<std::string, MakeStage, std::less<>> all;
  return all;
}

[[noreturn]] void cannot(std::string_view what) {
  throw StageFailure(fmt::format("this stage cannot {}", what));
}

}  // namespace

bool Stage::remove_key(const std::string& key) {
  const auto [backend, urls] = *endpoints().begin();
  const auto store = find_store_kind(backend)->make(urls.front(), std::chrono::seconds(1));
  const auto removed = store->remove_keys({&key, 1});
  if (!removed && removed.error().kind == StoreError::Kind::unanswered) return false;
  if (!removed) throw StageFailure(removed.error().message);
  return *removed > 0;
}
std::string Stage::value_of(const std::string& /*key*/) { cannot("tell what it holds"); }
void Stage::restart() { cannot("restart its server"); }
void Stage::jump_clock(Duration /*ahead*/) { cannot("move its clock"); }
void Stage::fill_memory(const std::string& /*key*/) { cannot("fill its memory"); }
void Stage::cut_replication() { cannot("cut its replication"); }
void Stage::fail_over() { cannot("fail over"); }
void Stage::end_session(const std::string& /*key*/) { cannot("end a session"); }
void Stage::limit(Limit /*what*/, std::chrono::seconds /*time*/) { cannot("limit its sessions"); }
void Stage::begin_transaction() { cannot("open a transaction"); }
bool Stage::commit_transaction() { cannot("commit a transaction"); }

StageRegistration::StageRegistration(std::string_view backend, MakeStage make) {
  makers().emplace(backend, make);
}

tl::expected<std::unique_ptr<House>, std::string> House::open(Options options) {
  std::unique_ptr<House> house(new House);
  house->options_ = std::move(options);
  if (house->options_.client_program.empty()) house->options_.client_program = "/proc/self/exe";
  auto testbed = testbed::Testbed::start(house->options_.testbed);
  if (!testbed) return tl::unexpected(testbed.error());
  house->testbed_ = std::move(*testbed);
  auto proxies = testbed::ProxyPool::start();
  if (!proxies) return tl::unexpected(proxies.error());
  house->proxies_ = std::move(*proxies);
  auto counter = testbed::start_redis(*house->testbed_, {.durable = false, .max_clients = 1000});
  if (!counter) return tl::unexpected(counter.error());
  house->counter_url_ = (*counter)->url();
  house->counter_ = *std::move(counter);
  return house;
}

tl::expected<std::shared_ptr<Stage>, NoStage> House::stage(const Descriptor& strategy,
                                                           Ground ground) {
  const std::string_view backend = strategy.backend;
  if (strategy.traits.nodes > 1) {
    return tl::unexpected(NoStage{"there is no stage of several nodes yet"});
  }
  if (strategy.traits.needs_replicas) {
    return tl::unexpected(NoStage{"there is no stage with replicas that acknowledge yet"});
  }
  const auto maker = makers().find(backend);
  if (maker == makers().end()) {
    return tl::unexpected(NoStage{fmt::format("there is no stage for {} yet", backend)});
  }
  if (ground != Ground::shared) return maker->second(*this, ground);
  const std::scoped_lock lock(mutex_);
  auto found = shared_.find(backend);
  if (found == shared_.end()) {
    found = shared_.emplace(backend, maker->second(*this, ground)).first;
  }
  return found->second;
}

std::unique_ptr<testbed::Proxy> House::line_to(std::uint16_t port) {
  auto proxy = testbed::start_proxy(*proxies_, port);
  if (!proxy) throw StageFailure(proxy.error());
  return *std::move(proxy);
}

}  // namespace lockbench::hazards
