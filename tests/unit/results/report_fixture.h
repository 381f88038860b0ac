#pragma once

#include <gmock/gmock.h>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "results/report/report.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {

inline Part part_of(const Result& result) {
  const Source source{.file = "runs/a.json", .result = result, .flaws = {}};
  return make_view(std::span(&source, 1)).parts.front();
}

template <class Wanted>
const Wanted* find_block(const Part& part, std::string_view title) {
  for (const Section& section : part.sections) {
    for (const Block& block : section.blocks) {
      const auto* found = std::get_if<Wanted>(&block);
      if constexpr (std::is_same_v<Wanted, Table>) {
        if (found != nullptr && found->caption == title) return found;
      } else {
        if (found != nullptr && found->title == title) return found;
      }
    }
  }
  return nullptr;
}

inline auto says(Tone tone, const std::string& text) {
  using testing::Field;
  return testing::Contains(
      AllOf(Field(&Remark::tone, tone), Field(&Remark::text, testing::HasSubstr(text))));
}

inline Run exclusive_run(const std::string& strategy, const std::string& backend, double rate) {
  auto run = simple_run(strategy);
  run.backend = backend;
  run.sections = 1000;
  run.sections_per_second = rate;
  run.acquire = sample_distribution();
  run.audit.increments = 1000;
  return run;
}

}  // namespace lockbench::results::report
