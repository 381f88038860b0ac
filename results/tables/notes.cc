#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "results/file/loads.h"
#include "results/tables/runs.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kMaxErrorNotes = 20;

int repetitions(const Result& result) {
  int most = 1;
  for (const Run& run : result.runs) {
    most = std::max(most, run.repetition);
  }
  return most;
}

std::string run_name(const Run& run, const Result& result, int repetitions) {
  const std::string name = name_of(run, result);
  return repetitions > 1 ? fmt::format("{}, repetition {}", name, run.repetition) : name;
}

void add_invalid_runs(const Result& result, int repetitions, std::vector<std::string>& lines) {
  for (const Run& run : result.runs) {
    if (!run.generator.valid) {
      const auto& reasons = run.generator.reasons;
      lines.push_back(fmt::format(
          "invalid: {}: {}", run_name(run, result, repetitions),
          reasons.empty() ? "no reason given" : fmt::format("{}", fmt::join(reasons, "; "))));
    }
  }
}

/// A run without any grant has no figures to show.
void add_ungranted(const Result& result, int repetitions, std::vector<std::string>& lines) {
  for (const Run& run : result.runs) {
    const Outcomes& seen = run.outcomes;
    const bool tried =
        seen.refused + seen.timed_out + seen.failed + seen.unknown + seen.abandoned > 0;
    if (run.sections_per_second > 0 || seen.acquired > 0 || !tried) continue;
    lines.push_back(fmt::format(
        "nothing granted: {}: {} refused, {} timed out, {} failed, {} unknown, {} abandoned",
        run_name(run, result, repetitions), seen.refused, seen.timed_out, seen.failed, seen.unknown,
        seen.abandoned));
  }
}

/// Every run ends with up to one waiting acquisition per client. More than that is a backlog.
void add_abandoned(const Result& result, std::vector<std::string>& lines) {
  std::set<std::string> said;
  for (const Run& run : result.runs) {
    const std::uint64_t abandoned = run.outcomes.abandoned;
    const std::string name = name_of(run, result);
    if (abandoned > run.fairness.per_client.size() && said.insert(name).second) {
      lines.push_back(fmt::format(
          "abandoned: {}: {} acquisitions were still waiting when the run ended", name, abandoned));
    }
  }
}

/// "throughput fell to 4 % and recovered 120 ms after healing"
std::string effect_of(const FaultMark& mark) {
  if (!std::isfinite(mark.lowest_share)) return "too few grants before it to compare with";
  std::string effect =
      fmt::format("throughput fell to {:.0f} %", 100 * std::min(mark.lowest_share, 1.0));
  if (!mark.recovery_seconds) return effect + " and did not recover before the run ended";
  return fmt::format("{} and recovered {} after {}", effect, human_seconds(*mark.recovery_seconds),
                     mark.healed_seconds ? "healing" : "the fault");
}

void add_faults(const Result& result, int repetitions, std::vector<std::string>& lines) {
  for (const Run& run : result.runs) {
    for (const FaultMark& mark : run.faults) {
      const std::string healed =
          mark.healed_seconds ? ", healed at " + human_seconds(*mark.healed_seconds) : "";
      lines.push_back(fmt::format("fault: {}: {} at {}{}: {}", run_name(run, result, repetitions),
                                  mark.fault, human_seconds(mark.at_seconds), healed,
                                  effect_of(mark)));
    }
  }
}

/// The same failure in several repetitions gives one line.
void add_errors(const Result& result, std::vector<std::string>& lines) {
  std::set<std::string> said;
  std::size_t left_out = 0;
  for (const Run& run : result.runs) {
    for (const std::string& error : run.errors) {
      std::string line = fmt::format("failure: {}: {}", run.strategy, error);
      if (said.contains(line)) {
        continue;
      }
      if (said.size() == kMaxErrorNotes) {
        ++left_out;
        continue;
      }
      lines.push_back(line);
      said.insert(std::move(line));
    }
  }
  if (left_out > 0) {
    lines.push_back(fmt::format("failure: and {} more, see the result file", left_out));
  }
}

/// Strategies with the same reason share a line.
void add_skipped(const Result& result, std::vector<std::string>& lines) {
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<std::string>> strategies;
  for (const Skipped& skipped : result.skipped) {
    auto& names = strategies[skipped.reason];
    if (names.empty()) {
      reasons.push_back(skipped.reason);
    }
    names.push_back(skipped.strategy);
  }
  for (const std::string& reason : reasons) {
    lines.push_back(fmt::format("skipped: {}: {}", fmt::join(strategies[reason], ", "), reason));
  }
}

}  // namespace

std::vector<std::string> notes(const Result& result) {
  std::vector<std::string> lines;
  const int repeated = repetitions(result);
  if (result.interrupted) {
    lines.emplace_back("interrupted: these are the figures up to then");
  }
  if (repeated > 1) {
    lines.emplace_back(
        "repeated: figures are medians over the repetitions, counts are sums, max is the largest; "
        "± shows the repetition farthest from the median");
  }
  add_invalid_runs(result, repeated, lines);
  add_ungranted(result, repeated, lines);
  add_abandoned(result, lines);
  add_faults(result, repeated, lines);
  add_errors(result, lines);
  add_skipped(result, lines);
  for (std::string& line : lines) {
    line = printable(line);
  }
  return lines;
}

}  // namespace lockbench::results
