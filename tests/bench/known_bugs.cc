#include "tests/support/known_bugs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "strategies/carrier.h"
#include "tests/support/must.h"

// Prints the table of known bugs in docs/simulation.md: how long the hunt takes to find each, and
// that it finds nothing without the mistake.
// Usage: lockbench_known_bugs [SECTIONS]

namespace lockbench {
namespace {

constexpr std::uint64_t kMostSeeds = 1'000'000;

/// The sections until the oracle finds something; at least `wanted` if it does not.
std::uint64_t sections_without(const test::KnownBug& bug, std::uint64_t wanted) {
  std::uint64_t sections = 0;
  for (std::uint64_t seed = 0; seed < kMostSeeds && sections < wanted; ++seed) {
    const auto verdict = test::must(simulate::play(bug.without, {.seed = seed}));
    if (verdict.finding && verdict.finding->oracle == bug.oracle) {
      fmt::print(stderr, "{} without the mistake: {}: {}\n", bug.name, verdict.trial.to_string(),
                 verdict.finding->what);
      return sections;
    }
    sections += verdict.sections;
  }
  return sections;
}

void print_table(std::uint64_t wanted) {
  fmt::print(
      "| bug | found in | oracle | seed | seeds, seconds until found | sections without it |\n"
      "|---|---|---|---:|---:|---:|\n");
  for (const test::KnownBug& bug : test::known_bugs()) {
    const TimePoint began = BootClock::now();
    const auto hit = test::hunt_for(bug.oracle, bug.with, 0, kMostSeeds);
    const double took = seconds(BootClock::now() - began);
    fmt::print("| {} | {} | {} | {} | {}, {:.1f} s | {} |\n", bug.what, bug.where,
               simulate::to_string(bug.oracle), hit ? std::to_string(hit->verdict.trial.seed) : "–",
               hit ? hit->seeds : kMostSeeds, took, sections_without(bug, wanted));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace lockbench

int main(int argc, char** argv) {
  constexpr std::uint64_t kSections = 1'000'000;
  lockbench::print_table(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : kSections);
  return 0;
}
