#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "deployment/failure.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/etcd/etcd_ground.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

std::string lock_of(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

EtcdGround::EtcdGround()
    : server_(deployment::need(testbed::start_etcd(shared_testbed()))), probe_(server_->port()) {}

std::vector<std::string> EtcdGround::keys() {
  std::set<std::string> locks;
  for (const auto& key : probe_.keys()) locks.insert(lock_of(key.key()));
  return {locks.begin(), locks.end()};
}

void EtcdGround::take_away(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) probe_.remove_all(key + "/");
}

int EtcdGround::other_connections() {
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

int EtcdGround::waiting() {
  std::map<std::string, int> places;
  for (const auto& key : probe_.keys()) {
    if (key.key().find("/guard/") == std::string::npos) ++places[lock_of(key.key())];
  }
  int waiting = 0;
  for (const auto& [lock, count] : places) waiting += count - 1;
  return waiting;
}

EtcdGround& shared_etcd() {
  static EtcdGround ground;
  return ground;
}

std::vector<std::string_view> tested_backends() { return {"etcd"}; }

Ground& shared_ground() { return shared_etcd(); }

std::unique_ptr<Ground> own_ground() { return std::make_unique<EtcdGround>(); }

}  // namespace lockbench::test
