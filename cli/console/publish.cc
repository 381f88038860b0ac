#include "cli/console/publish.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/file/save.h"
#include "results/tables/outcomes.h"
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
    const auto& hazards = strategy->hazards;
    const auto gravest = std::max_element(
        hazards.begin(), hazards.end(), [](const KnownHazard& a, const KnownHazard& b) {
          return results::gravity(to_string(a.outcome)) < results::gravity(to_string(b.outcome));
        });
    if (gravest == hazards.end() || !results::does_harm(to_string(gravest->outcome))) continue;
    flaws[run.strategy] = gravest->scenario;
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

bool save_result(const results::Result& result, const std::string& path, Console& console) {
  const auto saved = results::save(path, results::to_json(result));
  if (!saved) {
    console.warn("not saved: " + saved.error());
    return false;
  }
  if (!saved->warning.empty()) console.warn(saved->warning);
  console.note("saved in " + saved->path.string());
  return saved->warning.empty();
}

bool print_text(const std::string& text, Console& console) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return true;
  console.warn("the result could not be written to stdout");
  return false;
}

std::vector<std::string> missed_thresholds(const std::vector<results::Threshold>& thresholds,
                                           const results::Result& result,
                                           const std::vector<Selected>& selected) {
  std::vector<std::string> missed;
  for (const results::Threshold& threshold : thresholds) {
    const auto outcomes = results::evaluate(threshold, result.runs);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const results::ThresholdOutcome& outcome = outcomes[i];
      if (outcome.kept || is_exempt(outcome.strategy, selected)) continue;
      missed.push_back(fmt::format("threshold missed: {} by {} (repetition {}): {}", threshold.text,
                                   results::name_of(result.runs[i], result), outcome.repetition,
                                   outcome.reason));
    }
  }
  return missed;
}

}  // namespace lockbench::cli
