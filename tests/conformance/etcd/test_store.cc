#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "deployment/failure.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/etcd/etcd_test_store.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

std::string lock_of(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

EtcdTestStore::EtcdTestStore()
    : server_(deployment::need(testbed::start_etcd(shared_testbed()))), probe_(server_->port()) {}

std::vector<std::string> EtcdTestStore::keys() {
  std::set<std::string> locks;
  for (const auto& key : probe_.keys()) locks.insert(lock_of(key.key()));
  return {locks.begin(), locks.end()};
}

std::vector<std::string> EtcdTestStore::staying() {
  std::vector<std::string> leaseless;
  for (const auto& key : probe_.keys()) {
    if (key.lease() == 0) leaseless.push_back(key.key());
  }
  return leaseless;
}

void EtcdTestStore::take_away(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) probe_.remove_all(key + "/");
}

int EtcdTestStore::other_connections() {
  probe_.keys();  // so that its own connection is there, and counted each time
  // "  0: 0100007F:C1A2 0100007F:5EC4 01 ...": in hex, and 01 is an established one.
  std::ifstream table("/proc/net/tcp");
  const std::string wanted = fmt::format(":{:04X}", server_->port());
  std::string number, local, remote, state, rest;
  int connections = 0;
  std::getline(table, rest);
  while (table >> number >> local >> remote >> state && std::getline(table, rest)) {
    if (remote.ends_with(wanted) && state == "01") ++connections;
  }
  return connections;
}

int EtcdTestStore::waiting() {
  std::map<std::string, int> places;
  for (const auto& key : probe_.keys()) {
    if (key.key().find("/guard/") == std::string::npos) ++places[lock_of(key.key())];
  }
  int waiting = 0;
  for (const auto& [lock, count] : places) waiting += count - 1;
  return waiting;
}

EtcdTestStore& shared_etcd() {
  static EtcdTestStore tested;
  return tested;
}

namespace {

TestStore& shared() { return shared_etcd(); }

std::unique_ptr<TestStore> make() { return std::make_unique<EtcdTestStore>(); }

const TestedStoreRegistration registration({.name = "etcd",
                                            .backends = {"etcd"},
                                            .shared = shared,
                                            .make = make,
                                            .properties = etcd_properties});

}  // namespace

}  // namespace lockbench::test
