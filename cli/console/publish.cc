#include "cli/console/publish.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/console/console.h"
#include "results/file/loads.h"
#include "results/tables/outcomes.h"
#include "results/tables/text.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

bool is_exempt(const std::string& name, const std::vector<Selected>& selected) {
  const auto found = std::find_if(selected.begin(), selected.end(),
                                  [&](const Selected& one) { return one.strategy->name == name; });
  if (found == selected.end() || found->named) return false;
  const Traits& traits = found->strategy->traits;
  return !traits.promises_exclusion || traits.one_process;
}

}  // namespace

results::KnownFlaws known_flaws(const results::Result& result) {
  results::KnownFlaws flaws;
  for (const results::Run& run : result.runs) {
    const Descriptor* strategy = find_strategy(run.strategy);
    if (strategy == nullptr) continue;
    results::KnownFlaw& flaw = flaws[run.strategy];
    flaw.superseded_by = strategy->superseded_by;
    const auto& hazards = strategy->hazards;
    const auto gravest = std::max_element(
        hazards.begin(), hazards.end(), [](const KnownHazard& a, const KnownHazard& b) {
          return results::gravity(to_string(a.outcome)) < results::gravity(to_string(b.outcome));
        });
    if (gravest == hazards.end() || !results::does_harm(to_string(gravest->outcome))) continue;
    flaw.hazard = gravest->scenario;
  }
  return flaws;
}

results::Look look_of(const OutputOptions& options) {
  return {.format = options.format,
          .style = {.color = may_color(stdout),
                    .ascii = !is_utf8_locale(),
                    .width = output_width(stdout)},
          .columns = options.columns};
}

std::string render(const results::Result& result, const OutputOptions& options) {
  return results::render(result, known_flaws(result), look_of(options)).value();
}

bool print_text(const std::string& given) {
  // A file keeps every byte of a result; a terminal would obey some.
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const std::string text = terminal ? results::printable_page(given, may_color(stdout)) : given;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return true;
  fmt::print(stderr, "the result could not be written to stdout\n");
  return false;
}

std::vector<std::string> missed_thresholds(const std::vector<results::Threshold>& thresholds,
                                           const results::Result& result,
                                           const std::vector<Selected>& selected) {
  std::vector<std::string> missed;
  for (const results::Threshold& threshold : thresholds) {
    for (const results::Run& run : result.runs) {
      const results::ThresholdOutcome outcome = results::evaluate(threshold, run);
      if (outcome.kept() || is_exempt(run.strategy, selected)) continue;
      missed.push_back(fmt::format("threshold missed: {} by {} (repetition {}): {}", threshold.text,
                                   results::name_of(run, result), run.repetition, outcome.reason));
    }
  }
  return missed;
}

}  // namespace lockbench::cli
