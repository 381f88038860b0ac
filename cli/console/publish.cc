#include "cli/console/publish.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/console/console.h"
#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/file/save.h"
#include "results/tables/hazards.h"
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

// An unknown strategy is expected to promise exclusion.
bool promises_exclusion(const results::Run& run) {
  const Descriptor* strategy = find_strategy(run.strategy);
  return strategy == nullptr || strategy->traits.promises_exclusion;
}

bool had_errors(const results::Run& run) {
  // A counter that could not be read is an error, though no outcome shows it.
  const bool wrote = run.sections > run.shared_sections;
  const bool unaudited = wrote && run.audit.verdict == results::Verdict::unaudited;
  // With --fault, failed operations are expected.
  if (!run.faults.empty()) return run.audit.resource_failures > 0 || unaudited;
  return !run.errors.empty() || run.outcomes.failed > 0 || run.outcomes.unknown > 0 ||
         run.releases_failed > 0 || run.audit.resource_failures > 0 || unaudited;
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

void ResultFile::keep(const results::Result& result) {
  if (is_stdout()) return;
  const TimePoint began = BootClock::now();
  const auto kept = results::replace(path_, results::to_json(result));
  kept_at_ = BootClock::now();
  took_ = kept_at_ - began;
  if (kept || failed_) return;
  failed_ = true;
  console_.warn("not saved so far: " + kept.error());
}

bool ResultFile::has_time() const {
  constexpr int kLeastPause = 20;
  return BootClock::now() - kept_at_ >= kLeastPause * took_;
}

bool ResultFile::save(const results::Result& result) {
  if (is_stdout()) return print_text(results::to_json(result));
  const auto saved = results::save(path_, results::to_json(result));
  if (!saved) {
    console_.warn("not saved: " + saved.error());
    return false;
  }
  if (!saved->warning.empty()) console_.warn(saved->warning);
  const std::string path = saved->path.string();
  console_.event("saved", {{"file", path}}, "saved in " + path);
  return saved->warning.empty();
}

int gravest(int a, int b) {
  using namespace exit_code;
  for (const int code : {kInterrupted, kExclusionBroken, kErrors, kInvalid, kThresholdMissed}) {
    if (a == code || b == code) return code;
  }
  return std::max(a, b);
}

int exit_code_of(const Ending& ending) {
  if (ending.interrupted && !ending.rank_lost) return exit_code::kInterrupted;
  if (ending.exclusion_broken) return exit_code::kExclusionBroken;
  if (ending.planned_too_high) return exit_code::kThresholdMissed;
  if (ending.errors || ending.rank_lost || ending.nothing_granted) return exit_code::kErrors;
  if (ending.invalid && ending.strict) return exit_code::kInvalid;
  if (ending.threshold_missed) return exit_code::kThresholdMissed;
  return exit_code::kFine;
}

Ending ending_of(const results::Result& result) {
  Ending ending{.interrupted = result.interrupted, .rank_lost = result.exit_code.has_value()};
  for (const results::Run& run : result.runs) {
    if (run.audit.verdict == results::Verdict::violated && promises_exclusion(run)) {
      ending.exclusion_broken = true;
    }
    ending.errors |= had_errors(run);
    ending.nothing_granted |= run.outcomes.acquired == 0;
    ending.invalid |= !run.generator.valid;
  }
  return ending;
}

}  // namespace lockbench::cli
