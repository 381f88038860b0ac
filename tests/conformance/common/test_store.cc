#include "tests/conformance/common/test_store.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "strategies/carrier.h"
#include "tests/conformance/common/bench.h"
#include "tests/support/main.h"

namespace lockbench::test {
namespace {

std::vector<TestedStore>& all_stores() {
  static std::vector<TestedStore> all;
  return all;
}

std::string_view& chosen() {
  static std::string_view name;
  return name;
}

/// Runs the common tests and those of this store.
void choose(std::string_view name) {
  chosen() = name;
  select_folder("conformance/common");
  select_folder(fmt::format("conformance/{}", tested_store().name));
}

const ArgumentRegistration registration("--store", choose);

}  // namespace

TestedStoreRegistration::TestedStoreRegistration(TestedStore store) {
  all_stores().push_back(std::move(store));
}

const TestedStore& tested_store() {
  std::string names;
  for (const TestedStore& store : all_stores()) {
    if (store.name == chosen()) return store;
    names += fmt::format(" {}", store.name);
  }
  throw std::runtime_error("--store=NAME takes one of these:" + names);
}

std::vector<std::string_view> of_tested_store(std::vector<std::string_view> strategies) {
  std::erase_if(strategies,
                [](std::string_view name) { return !name.starts_with(tested_backends().front()); });
  return strategies;
}

bool TestStore::exists(const std::string& key) {
  const std::vector<std::string> all = keys();
  return std::find(all.begin(), all.end(), key) != all.end();
}

bool TestStore::becomes_empty() {
  return comes_true([this] { return keys().empty(); });
}

std::optional<TimePoint> end_of_record(std::string_view record) {
  constexpr std::string_view kDuration = "\"leaseDurationSeconds\":";
  const std::size_t at = record.find(kDuration);
  if (at == std::string_view::npos) return std::nullopt;
  const double left = std::atof(std::string(record.substr(at + kDuration.size())).c_str());
  return Carrier::current().now() +
         std::chrono::microseconds(static_cast<std::int64_t>(left * 1e6));
}

int connections_to(std::uint16_t port) {
  // "  0: 0100007F:C1A2 0100007F:5EC4 01 ...": in hex, and 01 is an established one.
  std::ifstream table("/proc/net/tcp");
  const std::string wanted = fmt::format(":{:04X}", port);
  std::string number, local, remote, state, rest;
  int connections = 0;
  std::getline(table, rest);
  while (table >> number >> local >> remote >> state && std::getline(table, rest)) {
    if (remote.ends_with(wanted) && state == "01") ++connections;
  }
  return connections;
}

std::string url_of(std::uint16_t port) { return shared_store().server().url_form().on({port}); }

}  // namespace lockbench::test
