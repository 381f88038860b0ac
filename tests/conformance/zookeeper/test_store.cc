#include <fmt/format.h>

#include <algorithm>

#include "deployment/failure.h"
#include "tests/conformance/zookeeper/zookeeper_test_store.h"
#include "tests/support/servers.h"

namespace lockbench::test {
ZookeeperTestStore::ZookeeperTestStore()
    : server_(deployment::need(testbed::start_zookeeper(
          shared_testbed(), {.config = {"4lw.commands.whitelist=srvr,envi,cons,dump"}}))),
      probe_(std::make_unique<ZookeeperProbe>(*server_)) {}

std::vector<std::string> ZookeeperTestStore::keys() {
  std::vector<std::string> keys;
  for (const std::string& run : probe_->children("/lockbench")) {
    const std::string path = "/lockbench/" + run;
    for (const std::string& name : probe_->children(path)) {
      const std::string node = fmt::format("{}/{}", path, name);
      // What stands for a key is there for a run; what is in it, or lasts as long as a session, is
      // a lock.
      const bool held = probe_->look(node).owner != 0 || !probe_->children(node).empty();
      if (held) keys.push_back(fmt::format("lockbench:{}:{}", run, name));
    }
  }
  return keys;
}

std::optional<TimePoint> ZookeeperTestStore::end_of(const std::string& /*key*/) {
  return std::nullopt;  // as long as the session lives
}

void ZookeeperTestStore::take_away(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const std::string node = node_of(key);
    for (const std::string& child : probe_->children(node))
      probe_->remove(fmt::format("{}/{}", node, child));
    if (probe_->look(node).owner != 0) probe_->remove(node);
  }
}

int ZookeeperTestStore::other_connections() { return probe_->other_connections(); }

std::string node_of(const std::string& key) {
  std::string path = "/" + key;
  std::replace(path.begin(), path.end(), ':', '/');
  return path;
}

ZookeeperTestStore& shared_zookeeper() {
  static ZookeeperTestStore tested;
  return tested;
}

namespace {

TestStore& shared() { return shared_zookeeper(); }

std::unique_ptr<TestStore> make() { return std::make_unique<ZookeeperTestStore>(); }

const TestedStoreRegistration registration({.name = "zookeeper",
                                            .backends = {"zookeeper"},
                                            .shared = shared,
                                            .make = make,
                                            .properties = zookeeper_properties});

}  // namespace

}  // namespace lockbench::test
