#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>

#include "strategies/carrier.h"
#include "tests/conformance/redlock/quorum_store.h"

namespace lockbench::test {
namespace {

/// Servers count in whole milliseconds.
constexpr std::chrono::milliseconds kTick{2};

}  // namespace

QuorumStore::QuorumStore() : probes_(kNodes) {
  shared_testbed();
  std::vector<std::future<std::unique_ptr<testbed::Server>>> begun;
  begun.reserve(kNodes);
  for (std::size_t i = 0; i < kNodes; ++i) {
    begun.push_back(std::async(std::launch::async, [] { return own_redis(); }));
  }
  nodes_.reserve(kNodes);
  for (auto& node : begun) nodes_.push_back(node.get());
}

std::vector<testbed::Server*> QuorumStore::servers() {
  std::vector<testbed::Server*> all;
  all.reserve(kNodes);
  for (const auto& node : nodes_) all.push_back(node.get());
  return all;
}

RedisProbe& QuorumStore::probe(std::size_t number) {
  auto& probe = probes_.at(number);
  if (probe) {
    try {
      probe->ask({"PING"});
      return *probe;
    } catch (const std::runtime_error&) {
      probe.reset();
    }
  }
  probe = std::make_unique<RedisProbe>(node(number).port());
  return *probe;
}

void QuorumStore::clear() {
  for (std::size_t i = 0; i < kNodes; ++i) probe(i).ask({"FLUSHALL"});
}

std::vector<std::string> QuorumStore::keys() {
  std::set<std::string> all;
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (!node(i).alive()) continue;
    for (const std::string& key : probe(i).keys()) all.insert(key);
  }
  return {all.begin(), all.end()};
}

std::optional<TimePoint> QuorumStore::end_of(const std::string& key) {
  std::vector<TimePoint> ends;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const TimePoint now = Carrier::current().now();
    if (!probe(i).exists(key)) {
      ends.push_back(now);
    } else if (const auto left = probe(i).time_to_live(key)) {
      ends.push_back(Carrier::current().now() + *left + kTick);
    }
  }
  std::sort(ends.begin(), ends.end());
  if (ends.size() < kMajority) return std::nullopt;
  return ends[kMajority - 1];
}

void QuorumStore::take_away(const std::vector<std::string>& keys) {
  for (std::size_t i = 0; i < kNodes; ++i) probe(i).remove(keys);
}

int QuorumStore::other_connections() {
  int connections = 0;
  for (std::size_t i = 0; i < kNodes; ++i) connections += probe(i).other_connections();
  return connections;
}

std::unique_ptr<RedisMonitor> QuorumStore::monitor(std::size_t server) {
  return std::make_unique<RedisMonitor>(node(server).port());
}

void QuorumStore::repair() {
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (!node(i).alive()) must(node(i).restart(false));
    must(node(i).thaw());
  }
  clear();
}

QuorumStore& breakable_store() {
  static QuorumStore tested;
  tested.repair();
  return tested;
}

namespace {

const TestedStoreRegistration registration({.name = "redlock",
                                            .backends = {"redis-quorum"},
                                            .shared = the_one<QuorumStore>,
                                            .make = another<QuorumStore>,
                                            .properties = outage_properties});

}  // namespace

}  // namespace lockbench::test
