#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "results/report/parts.h"
#include "results/tables/outcomes.h"
#include "results/tables/runs.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

constexpr std::size_t kMostNames = 6;

std::string listed(const std::vector<std::string>& names) {
  return results::listed(names, kMostNames);
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", human_count(static_cast<double>(count)), count == 1 ? one : many);
}

std::vector<std::string> names_with(const std::vector<Group>& groups, Verdict verdict) {
  std::vector<std::string> names;
  for (const Group& group : groups) {
    if (group.ever(verdict)) names.push_back(group.strategy);
  }
  return names;
}

std::string harm_of(const Group& group) {
  std::uint64_t lost = 0, overlaps = 0, regressions = 0;
  for (const Run* run : group.runs) {
    lost += run->audit.lost_updates;
    overlaps += run->audit.overlaps;
    regressions += run->audit.fence_regressions;
  }
  std::vector<std::string> harm;
  if (lost > 0) harm.push_back(counted(lost, "lost update", "lost updates"));
  if (overlaps > 0) {
    harm.push_back(counted(overlaps, "overlap of two holders", "overlaps of two holders"));
  }
  if (regressions > 0) {
    harm.push_back(counted(regressions, "fencing number that did not increase",
                           "fencing numbers that did not increase"));
  }
  return listed(harm);
}

/// What the fewest contended grants of those that kept exclusion can show.
std::string power_of(const std::vector<Group>& groups) {
  std::optional<double> most;
  for (const Group& group : groups) {
    if (!group.kept_exclusion()) continue;
    for (const Run* run : group.runs) {
      const auto bound = run->audit.violations_per_million;
      if (bound) most = std::max(most.value_or(0), *bound);
    }
  }
  if (!most) return "";
  return fmt::format(" (with 95 % confidence at most {} violations in a million contended grants)",
                     human_number(*most));
}

void add_verdicts(const std::vector<Group>& groups, Remarks& headline) {
  for (const Group& group : groups) {
    if (!group.ever(Verdict::violated)) continue;
    const std::string harm = harm_of(group);
    headline.push_back({Tone::bad, fmt::format("{} violated exclusion{}{}.", group.strategy,
                                               harm.empty() ? "" : ": ", harm)});
  }
  std::size_t kept = 0;
  for (const Group& group : groups) {
    kept += group.kept_exclusion() ? 1 : 0;
  }
  if (kept > 0) {
    const std::string who = kept == 1 && groups.size() == 1
                                ? groups.front().strategy
                                : fmt::format("{} of {} strategies", kept, groups.size());
    headline.push_back({Tone::good, fmt::format("{} kept exclusion: no update was lost, no two "
                                                "clients held a lock at once{}.",
                                                who, power_of(groups))});
  }
  if (const auto untested = names_with(groups, Verdict::untested); !untested.empty()) {
    headline.push_back({Tone::doubtful, fmt::format("Exclusion was not tested for {}: too few "
                                                    "grants were contended.",
                                                    listed(untested))});
  }
  if (const auto controls = names_with(groups, Verdict::unprotected); !controls.empty()) {
    headline.push_back({Tone::plain, fmt::format("{} promises no exclusion and lost updates as "
                                                 "expected: the audit detects violations.",
                                                 listed(controls))});
  }
  if (const auto unknown = names_with(groups, Verdict::unaudited); !unknown.empty()) {
    headline.push_back({Tone::doubtful, fmt::format("{} was not audited: no write was "
                                                    "accepted, or the counter could not be read.",
                                                    listed(unknown))});
  }
}

/// Locks that kept exclusion: the ones to choose from.
std::vector<const Run*> candidates(const std::vector<Group>& groups) {
  std::vector<const Run*> runs;
  for (const Group& group : groups) {
    const Run& run = group.typical();
    if (run.backend != "local" && run.sections > 0 && group.kept_exclusion()) runs.push_back(&run);
  }
  return runs;
}

std::string bounded(double seconds, bool at_least) {
  return (at_least ? "at least " : "") + human_seconds(seconds);
}

std::string longest_wait(const Run& run) {
  return bounded(run.fairness.longest_wait_seconds, run.fairness.longest_wait_at_least);
}

void add_extremes(const std::vector<Group>& groups, Remarks& headline) {
  const std::vector<const Run*> runs = candidates(groups);
  if (runs.size() < 2) {
    for (const Run* run : runs) {
      headline.push_back(
          {Tone::plain,
           fmt::format("{}: {} sections a second; the median acquisition took {}, the 99th "
                       "percentile {}.",
                       run->strategy, human_number(run->sections_per_second),
                       bounded(run->acquire.p50, run->acquire.is_at_least("p50")),
                       bounded(run->acquire.p99, run->acquire.is_at_least("p99")))});
    }
    return;
  }
  const auto best = [&](auto less) { return *std::min_element(runs.begin(), runs.end(), less); };
  const Run* fastest = best(
      [](const Run* a, const Run* b) { return a->sections_per_second > b->sections_per_second; });
  const Run* slowest = best(
      [](const Run* a, const Run* b) { return a->sections_per_second < b->sections_per_second; });
  const Run* steadiest = best([](const Run* a, const Run* b) {
    return a->fairness.longest_wait_seconds < b->fairness.longest_wait_seconds;
  });
  headline.push_back(
      {Tone::plain,
       fmt::format("Highest throughput: {} with {} sections a second (lowest: {} with {}).",
                   fastest->strategy, human_number(fastest->sections_per_second), slowest->strategy,
                   human_number(slowest->sections_per_second))});
  headline.push_back({Tone::plain, fmt::format("Shortest longest wait: {} with {}; {} had {}.",
                                               steadiest->strategy, longest_wait(*steadiest),
                                               fastest->strategy, longest_wait(*fastest))});
}

void add_faults(const std::vector<Group>& groups, Remarks& headline) {
  for (const Group& group : groups) {
    for (const FaultMark& mark : group.typical().faults) {
      const bool is_lost = std::isfinite(mark.lowest_share) && !mark.recovery_seconds;
      headline.push_back(
          {is_lost ? Tone::bad : Tone::plain,
           fmt::format("{} under {}: {}.", group.strategy, mark.fault, effect_of(mark))});
    }
  }
}

/// The plays that apply to one strategy, and how many harmed it.
struct Fate {
  std::size_t plays = 0, harmed = 0;
};

/// Only strategies to which at least half as many plays apply as to any other: few plays apply to a
/// control.
void add_least_harmed(const std::map<std::string, Fate>& fates, Remarks& headline) {
  std::size_t most = 0;
  for (const auto& [strategy, fate] : fates) most = std::max(most, fate.plays);
  std::size_t fewest = most;
  for (const auto& [strategy, fate] : fates) {
    if (2 * fate.plays >= most) fewest = std::min(fewest, fate.harmed);
  }
  std::vector<std::string> names;
  for (const auto& [strategy, fate] : fates) {
    if (2 * fate.plays >= most && fate.harmed == fewest) names.push_back(strategy);
  }
  headline.push_back(
      {Tone::plain, fmt::format("Fewest harmful plays, {}: {}.", fewest, listed(names))});
}

}  // namespace

void add_run_headline(const Result& result, Remarks& headline) {
  if (result.runs.empty()) return;
  const std::vector<Group> groups = groups_of(result);
  add_verdicts(groups, headline);
  add_extremes(groups, headline);
  add_faults(groups, headline);
}

void add_hazard_headline(const Result& result, Remarks& headline) {
  if (!result.hazards || result.hazards->empty()) return;
  std::size_t played = 0, surprises = 0, unsafe = 0, refused = 0;
  std::map<std::string, Fate> fates;
  for (const Hazard& hazard : *result.hazards) {
    surprises += hazard.agrees ? 0 : 1;
    if (hazard.observed == "not-applicable" || hazard.observed == "not-played") continue;
    const std::size_t harm = does_harm(hazard.observed) ? 1 : 0;
    Fate& fate = fates[hazard.strategy];
    ++fate.plays;
    fate.harmed += harm;
    ++played;
    unsafe += harm;
    refused += hazard.observed == "refused" ? 1 : 0;
  }
  if (played == 0) {
    headline.push_back({Tone::doubtful, "None of the hazards applies to these strategies."});
    return;
  }
  headline.push_back({unsafe > 0 ? Tone::bad : Tone::good,
                      fmt::format("{} of {} plays ended in harm.", unsafe, played)});
  if (refused > 0) {
    headline.push_back(
        {Tone::plain,
         fmt::format("{} ended with a refused lock rather than a doubtful one.", refused)});
  }
  add_least_harmed(fates, headline);
  headline.push_back(
      surprises == 0 ? Remark{Tone::good, "Every outcome agrees with its declaration."}
                     : Remark{Tone::bad, counted(surprises, "outcome differs", "outcomes differ") +
                                             " from what the strategy declares."});
}

}  // namespace lockbench::results::report
