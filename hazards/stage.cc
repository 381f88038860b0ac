#include "hazards/stage.h"

#include <fmt/format.h>

#include "hazards/client_process.h"
#include "strategies/store.h"
#include "testbed/servers/redis_server.h"

namespace lockbench::hazards {
namespace {

std::map<std::string, MakeStage, std::less<>>& makers() {
  static std::map<std::string, MakeStage, std::less<>> all;
  return all;
}

std::string kind_of(const Descriptor& strategy) {
  return server_set(strategy) + (strategy.traits.nodes > 1 ? "-quorum" : "");
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
void Stage::limit(Limit /*what*/, std::chrono::seconds /*time*/) {
  cannot("limit its sessions");
}
void Stage::begin_transaction() { cannot("open a transaction"); }
tl::expected<void, std::string> Stage::wait_in_transaction(const std::string& /*key*/) {
  cannot("wait in a transaction");
}
bool Stage::commit_transaction() { cannot("commit a transaction"); }
void Stage::cut_off_successor() { cannot("cut off one replica alone"); }
void Stage::kill_node(std::size_t /*node*/) { cannot("kill one of several nodes"); }
void Stage::freeze_node(std::size_t /*node*/) { cannot("freeze one of several nodes"); }
void Stage::revive_node(std::size_t /*node*/) { cannot("revive one of several nodes"); }

StageRegistration::StageRegistration(std::string_view kind, MakeStage make) {
  makers().emplace(kind, make);
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
  const std::string kind = kind_of(strategy);
  const auto maker = makers().find(kind);
  if (maker == makers().end()) {
    return tl::unexpected(NoStage{fmt::format("there is no stage for {} yet", kind)});
  }
  if (ground != Ground::shared) return maker->second(*this, ground);
  const std::scoped_lock lock(mutex_);
  auto found = shared_.find(kind);
  if (found == shared_.end()) {
    found = shared_.emplace(kind, maker->second(*this, ground)).first;
  }
  return found->second;
}

std::unique_ptr<testbed::Proxy> House::line_to(std::uint16_t port) {
  auto proxy = testbed::start_proxy(*proxies_, port);
  if (!proxy) throw StageFailure(proxy.error());
  return *std::move(proxy);
}

}  // namespace lockbench::hazards
