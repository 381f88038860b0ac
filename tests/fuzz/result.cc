#include <array>
#include <span>
#include <string>

#include "results/file/json.h"
#include "results/report/report.h"
#include "results/stats/comparison.h"
#include "results/tables/formats.h"
#include "results/tables/show.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

using results::Format;
using results::Result;

/// Comparing many repetitions takes long by design.
constexpr std::size_t kMostCompared = 8;

void use(const Result& result) {
  for (const Format format : {Format::table, Format::csv, Format::markdown}) {
    static_cast<void>(results::render(result, {}, {.format = format}));
  }
  const results::report::Source source{"result.json", result, {}};
  static_cast<void>(results::report::to_page(std::span(&source, 1), "nonce"));
  constexpr std::size_t kMostLines = 4096, kLine = 128;
  for (const results::Run& run : result.runs) {
    require(results::to_hgrm(run.acquire).size() < kMostLines * kLine);
  }
  if (result.runs.empty() || result.runs.size() > kMostCompared) return;
  static_cast<void>(results::compare(result, result, {}));
}

void read_result(std::string_view bytes) {
  const auto read = results::from_json(bytes);
  if (!read) return require(read.error().find('\n') == std::string::npos);
  const std::string text = results::to_json(*read);
  const auto again = results::from_json(text);
  require(again.has_value());
  require(results::to_json(*again) == text);
  use(*read);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(result, lockbench::fuzz::read_result)
