#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "choose/answer.h"
#include "strategies/registry.h"
#include "tests/unit/results/samples.h"

namespace lockbench::choose {

/// A made-up strategy on the store "redis". By default no hazard breaks it.
inline Descriptor made_up(std::string_view name, Traits traits = {},
                          std::vector<KnownHazard> hazards = {}) {
  return {.name = name,
          .backend = "redis",
          .summary = "made up",
          .source = "this test",
          .traits = std::move(traits),
          .hazards = std::move(hazards)};
}

inline results::Run measured(std::string_view strategy, double acquire_p50,
                             double longest_wait = 1) {
  results::Run run = results::simple_run(std::string(strategy));
  run.outcomes = {.acquired = 10};
  run.acquire = {.count = 10, .p50 = acquire_p50, .p99 = 2 * acquire_p50};
  run.fairness.longest_wait_seconds = longest_wait;
  run.release = {};
  run.wait = {.round_trip_seconds = 1e-3, .backoff_seconds = 3e-3};
  return run;
}

inline results::Hazard played(std::string_view scenario, std::string_view strategy,
                              std::string_view outcome) {
  return {.scenario = std::string(scenario),
          .strategy = std::string(strategy),
          .expected = std::string(outcome),
          .observed = std::string(outcome),
          .evidence = {{"reason", std::string("it was seen")}}};
}

/// A result of these runs, under the utilisation that is assumed without a rate.
inline results::Result under(std::int64_t clients, std::vector<results::Run> runs) {
  results::Result result = results::minimal_result();
  result.workload = {
      {"clients", clients}, {"keys", std::int64_t{1}}, {"hold", 0.001}, {"rate", 700.0}};
  result.runs = std::move(runs);
  return result;
}

/// The requirements, with these faults to survive.
inline Requirements surviving(const std::vector<std::string>& words,
                              Requirements requirements = {}) {
  for (const std::string& word : words) {
    requirements.survive.push_back(find_survival(word).value());
  }
  return requirements;
}

/// Owns descriptors, and the evidence about them.
class World {
 public:
  /// Starts with made-up strategies of these names.
  World(std::initializer_list<std::string_view> names = {}) {
    for (const std::string_view name : names) add(made_up(name));
  }
  const Descriptor& add(Descriptor descriptor) {
    return *catalogue_.emplace_back(&descriptors_.emplace_back(std::move(descriptor)));
  }
  results::Result& file() { return file_; }

  Evidence evidence() const { return Evidence({{"mine.json", file_}}, {}); }
  Answer choose(const Requirements& requirements) const {
    return lockbench::choose::choose(requirements, catalogue_, evidence());
  }

 private:
  std::deque<Descriptor> descriptors_;
  std::vector<const Descriptor*> catalogue_;
  results::Result file_ = results::minimal_result();
};

/// The answer from the reference results.
inline Answer ask(const Requirements& requirements) {
  return choose(requirements, all_strategies(), Evidence({}, reference()));
}

inline std::vector<std::string> names(const std::vector<Candidate>& ranked) {
  std::vector<std::string> found;
  found.reserve(ranked.size());
  for (const Candidate& one : ranked) found.emplace_back(one.strategy->name);
  return found;
}

inline const Candidate& candidate(const Answer& answer, std::string_view name) {
  for (const auto* list : {&answer.ranked, &answer.ruled_out}) {
    for (const Candidate& one : *list) {
      if (one.strategy->name == name) return one;
    }
  }
  throw std::out_of_range(std::string(name));
}

/// Settings of the first choice; none if nothing qualifies.
inline std::vector<Setting> settings_of(const Answer& answer) {
  return answer.ranked.empty() ? std::vector<Setting>{} : answer.ranked.front().settings;
}

}  // namespace lockbench::choose
