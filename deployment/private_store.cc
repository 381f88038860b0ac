#include "deployment/private_store.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "strategies/store.h"
#include "testbed/process/parallel.h"
#include "testbed/process/process_tree.h"

namespace lockbench::deployment {

std::unique_ptr<testbed::Proxy> line_to(testbed::Testbed& host, std::uint16_t port, Duration rtt) {
  return need(testbed::start_proxy(host.proxies(), port, {.delay = each_way(rtt)}));
}

PrivateStore::Servers PrivateStore::servers() const {
  Servers all;
  for (const auto& server : servers_) all.push_back(server.get());
  return all;
}

PrivateStore::Servers PrivateStore::whole_store() const {
  Servers all = servers();
  if (!cluster_) all.resize(1);
  return all;
}

std::vector<std::string> PrivateStore::urls() const {
  std::vector<std::uint16_t> ports;
  if (lines_.empty()) {
    for (const testbed::Server* server : servers()) ports.push_back(server->port());
  } else {
    for (const auto& line : lines_) ports.push_back(line->port());
  }
  return urls_on(ports);
}

Endpoints PrivateStore::endpoints(const std::vector<std::uint16_t>& ports) const {
  if (servers().empty()) return {};
  return {{store_, ports.empty() ? urls() : urls_on(ports)}};
}

std::vector<std::string> PrivateStore::urls_on(const std::vector<std::uint16_t>& ports) const {
  const testbed::UrlForm& form = servers().front()->url_form();
  if (cluster_) return {form.on(ports)};
  std::vector<std::string> urls;
  urls.reserve(ports.size());
  for (const std::uint16_t port : ports) urls.push_back(form.on({port}));
  return urls;
}

std::vector<std::uint16_t> PrivateStore::ports() const {
  if (cluster_) throw Failure("a proxy can lead to one member only");
  std::vector<std::uint16_t> ports;
  for (const testbed::Server* server : servers()) ports.push_back(server->port());
  if (ports.empty()) throw Failure("there is no server");
  return ports;
}

void PrivateStore::draw_lines(testbed::Testbed& host, Duration rtt) {
  for (const testbed::Server* server : servers()) {
    lines_.push_back(line_to(host, server->port(), rtt));
  }
}

std::optional<double> PrivateStore::cpu_seconds() const {
  double all = 0;
  for (const testbed::Server* server : every_server()) {
    const auto seconds = testbed::cpu_seconds_of_tree(server->pid());
    if (!server->alive() || !seconds) return std::nullopt;
    all += *seconds;
  }
  return all;
}

bool PrivateStore::remove_key(const std::string& key) {
  const auto store = find_store_kind(store_)->make(urls().front(), std::chrono::seconds(1));
  const auto removed = store->remove_keys({&key, 1}, {});
  if (!removed && removed.error().kind == StoreError::Kind::unanswered) return false;
  return need(removed) > 0;
}

void PrivateStore::cannot(std::string_view what) {
  throw Failure(fmt::format("these servers cannot {}", what));
}

void PrivateStore::restart() {
  if (servers_.size() != 1) cannot("be restarted as one");
  need(servers_.front()->restart(keeps_data_));
}

void PrivateStore::jump_clock(Duration ahead) {
  if (!clock_) cannot("have their clock moved");
  clock_->set(ahead);
}

void PrivateStore::cut_replication() {
  if (!cluster_) cannot("have their replication cut");
  const testbed::Server& leading = leader();
  for (const auto& server : servers_) {
    if (server.get() != &leading) behind_ = server.get();
  }
  need(behind_->kill_hard());
}

void PrivateStore::fail_over() {
  if (behind_ == nullptr) cannot("fail over");
  need(leader().kill_hard());
  need(behind_->restart(true));
}

std::size_t PrivateStore::member(bool leads) const {
  const testbed::Server* const leading = &leader();
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if ((servers_[i].get() == leading) == leads) return i;
  }
  throw Failure("no member follows");
}

std::vector<std::size_t> PrivateStore::others_than(std::size_t member) const {
  std::vector<std::size_t> others;
  for (std::size_t other = 0; other < members(); ++other) {
    if (other != member) others.push_back(other);
  }
  return others;
}

void PrivateStore::isolate(std::size_t member) {
  if (!mesh_) cannot("have a member cut off");
  mesh_->isolate(member);
}

void PrivateStore::reunite() {
  if (!mesh_) cannot("have a member cut off");
  mesh_->heal();
}

void PrivateStore::freeze_leader() {
  if (!cluster_) cannot("have their leader stand still");
  frozen_ = &leader();
  need(frozen_->freeze());
}

void PrivateStore::thaw_leader() {
  if (frozen_ != nullptr) need(std::exchange(frozen_, nullptr)->thaw());
}

void PrivateStore::kill_leader() {
  if (!cluster_) cannot("fail over");
  killed_ = &leader();
  need(killed_->kill_hard());
}

void PrivateStore::replace_leader() {
  if (killed_ != nullptr) need(std::exchange(killed_, nullptr)->restart(true));
}

const testbed::ClockShim* PrivateStore::clock_for(testbed::Testbed& host, Setup setup) {
  if (setup != Setup::clocked) return nullptr;
  clock_ = need(testbed::ClockShim::make(host));
  return clock_.get();
}

testbed::Mesh* PrivateStore::mesh_for(testbed::Testbed& host, Setup setup) {
  if (setup != Setup::split) return nullptr;
  mesh_ = std::make_unique<testbed::Mesh>(host.proxies());
  return mesh_.get();
}

testbed::Server& PrivateStore::leader() const {
  for (const auto& server : servers_) {
    if (server->leads()) return *server;
  }
  throw Failure("no member leads the cluster");
}

void each(const PrivateStore::Servers& servers,
          const std::function<tl::expected<void, std::string>(testbed::Server&)>& work) {
  std::vector<tl::expected<void, std::string>> done(servers.size());
  testbed::in_parallel(servers.size(), [&](std::size_t i) { done[i] = work(*servers[i]); });
  for (const auto& one : done) need(one);
}

tl::expected<std::unique_ptr<PrivateStore>, NotStarted> start_private_store(
    const PrivateStoreKind& kind, testbed::Testbed& host, const StoreRequest& request) {
  try {
    return kind.start(host, request);
  } catch (const NotOffered& impossible) {
    return tl::unexpected(NotStarted{impossible.what(), impossible.why});
  } catch (const Failure& failure) {
    return tl::unexpected(NotStarted{failure.what()});
  }
}

std::string version_of_program(const std::filesystem::path& program) {
  // "Redis server v=7.0.15 sha=...", "memcached 1.6.18", "postgres (PostgreSQL) 15.18 (Debian...)",
  // "etcd Version: 3.4.23"
  std::string output(256, '\0');
  std::FILE* pipe = popen(fmt::format("'{}' --version", program.string()).c_str(), "re");
  if (pipe == nullptr) return "unknown";
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  pclose(pipe);
  const std::size_t start = output.find_first_of("0123456789");
  if (start == std::string::npos) return "unknown";
  return output.substr(start, output.find_first_of(" \n", start) - start);
}

}  // namespace lockbench::deployment
