#include "tests/hazards/support/fixtures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <stdexcept>

#include "strategies/registry.h"
#include "tests/folders.h"
#include "tests/support/eventually.h"

namespace lockbench::hazards::test {

ServerPool& server_pool() {
  static const std::unique_ptr<ServerPool> open = [] {
    auto opened =
        ServerPool::open({.client_program = LOCKBENCH_BINARY_DIR "/lockbench_with_mutants"});
    if (!opened) throw std::runtime_error(opened.error());
    return *std::move(opened);
  }();
  return *open;
}

const Scenario& scenario(std::string_view name) {
  const Scenario* const found = find_scenario(name);
  if (found == nullptr) throw std::runtime_error(fmt::format("no scenario {}", name));
  return *found;
}

const Descriptor& strategy(std::string_view name) {
  const Descriptor* const found = find_strategy(name);
  if (found == nullptr) throw std::runtime_error(fmt::format("no strategy {}", name));
  return *found;
}

std::shared_ptr<PrivateStore> store_for(std::string_view strategy_name, Setup setup) {
  auto store = server_pool().store(strategy(strategy_name), setup);
  if (!store) throw std::runtime_error(store.error().reason);
  return *std::move(store);
}

Cell undisturbed(const Scenario& scenario, const Descriptor& strategy) {
  Cell cell;
  EXPECT_TRUE(lockbench::test::eventually([&] {
    cell = play(server_pool(), scenario, strategy);
    if (cell.disturbed) std::cout << "played again: " << cell.reason << "\n";
    return !cell.disturbed;
  })) << cell.reason;
  return cell;
}

std::string description_of(const Cell& cell) {
  std::string text =
      fmt::format("{} / {}: {}\n", cell.scenario->name, cell.strategy->name, cell.reason);
  for (const auto& entry : cell.timeline) {
    text += fmt::format("  {:8.3f}  {}  {}\n",
                        std::chrono::duration<double>(entry.at - cell.began).count(), entry.who,
                        entry.what);
  }
  return text;
}

}  // namespace lockbench::hazards::test
