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

/// The text without its numbers.
std::string kind_of(const std::string& text) {
  std::string kind;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kind),
               [](char c) { return (c < '0' || c > '9') && c != '.'; });
  return kind;
}

/// A line for each kind of text: "WHAT: RUN: TEXT", or "WHAT: RUN, RUN and 7 more: TEXT (the first
/// of 9 runs)".
class RunNotes {
 public:
  RunNotes(std::string what, const Result& result, int repetitions)
      : what_(std::move(what)), result_(result), repetitions_(repetitions) {}

  void add(const Run& run, const std::string& text) {
    const std::string kind = kind_of(text);
    const auto same = std::find_if(notes_.begin(), notes_.end(),
                                   [&](const Note& one) { return one.kind == kind; });
    Note& its = same == notes_.end() ? notes_.emplace_back(Note{kind, text, {}}) : *same;
    its.runs.push_back(&run);
  }

  void take(std::vector<std::string>& lines) const {
    for (const Note& note : notes_) {
      const std::size_t count = note.runs.size();
      lines.push_back(fmt::format("{}: {}: {}{}", what_, names_of(note.runs), note.text,
                                  count > 1 ? fmt::format(" (the first of {} runs)", count) : ""));
    }
  }

 private:
  struct Note {
    std::string kind, text;
    std::vector<const Run*> runs;
  };

  std::string names_of(const std::vector<const Run*>& runs) const {
    if (runs.size() == 1) return run_name(*runs.front(), result_, repetitions_);
    constexpr std::size_t kMost = 3;
    std::vector<std::string> names;
    for (const Run* run : runs) {
      const std::string name = name_of(*run, result_);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    const std::size_t more = names.size() > kMost ? names.size() - kMost : 0;
    names.resize(names.size() - more);
    return fmt::format("{}{}", fmt::join(names, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  }

  std::string what_;
  const Result& result_;
  int repetitions_;
  std::vector<Note> notes_;
};

void add_invalid_runs(const Result& result, int repetitions, std::vector<std::string>& lines) {
  RunNotes notes("invalid", result, repetitions);
  for (const Run& run : result.runs) {
    if (run.generator.valid) continue;
    const auto& reasons = run.generator.reasons;
    if (reasons.empty()) notes.add(run, "no reason given");
    for (const std::string& reason : reasons) notes.add(run, reason);
  }
  notes.take(lines);
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
void add_abandoned(const Result& result, int repetitions, std::vector<std::string>& lines) {
  RunNotes notes("abandoned", result, repetitions);
  for (const Run& run : result.runs) {
    const std::uint64_t abandoned = run.outcomes.abandoned;
    // Condensed results have no figures of single clients.
    if (abandoned <= std::max<std::uint64_t>(run.load.clients, run.fairness.per_client.size()))
      continue;
    notes.add(run, fmt::format("{} acquisitions were still waiting when the run ended", abandoned));
  }
  notes.take(lines);
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

/// Ranks whose figures are their own, and what no rank sees of the others.
void add_ranks(const Result& result, int repetitions, std::vector<std::string>& lines) {
  RunNotes outliers("outlier", result, repetitions);
  for (const Run& run : result.runs) {
    for (const Rank& rank : run.ranks) {
      if (!rank.outlier) continue;
      outliers.add(run, fmt::format("rank {} on {} waits otherwise than most: p50 {}, p99 {}",
                                    rank.rank, rank.host, human_seconds(rank.acquire_p50),
                                    human_seconds(rank.acquire_p99)));
    }
  }
  outliers.take(lines);
  const bool any = std::any_of(result.runs.begin(), result.runs.end(),
                               [](const Run& run) { return !run.ranks.empty(); });
  if (!any) return;
  lines.emplace_back(
      "ranks: handoffs, overtakings, contended grants, overlaps and fencing order are those within "
      "each rank; lost updates and stale writes are those of all");
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

std::string effect_of(const FaultMark& mark) {
  if (!std::isfinite(mark.lowest_share)) return "too few grants before it to compare with";
  std::string effect =
      fmt::format("throughput fell to {:.0f} %", 100 * std::min(mark.lowest_share, 1.0));
  if (!mark.recovery_seconds) return effect + " and did not recover before the run ended";
  return fmt::format("{} and recovered {} after {}", effect, human_seconds(*mark.recovery_seconds),
                     mark.healed_seconds ? "healing" : "the fault");
}

std::vector<std::string> notes(const Result& result) {
  std::vector<std::string> lines;
  const int repeated = repetitions(result);
  if (result.interrupted) {
    lines.emplace_back(kInterrupted);
  }
  if (repeated > 1) {
    lines.emplace_back(
        "repeated: figures are medians over the repetitions, counts are sums, max is the largest; "
        "± shows the repetition farthest from the median");
  }
  add_invalid_runs(result, repeated, lines);
  add_ungranted(result, repeated, lines);
  add_abandoned(result, repeated, lines);
  add_faults(result, repeated, lines);
  add_ranks(result, repeated, lines);
  add_errors(result, lines);
  add_skipped(result, lines);
  for (std::string& line : lines) {
    line = printable(line);
  }
  return lines;
}

}  // namespace lockbench::results
