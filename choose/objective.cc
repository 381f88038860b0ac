#include "choose/objective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "choose/figure_text.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using results::Comparison;
using results::human_count;
using results::human_number;
using results::human_seconds;

constexpr std::string_view kArithmetic = "Little's law, for one lock";

bool is_upper_bound(const results::Threshold& slo) {
  return slo.comparison == Comparison::less || slo.comparison == Comparison::less_equal;
}

/// Whether a long mean wait shows in the figure, even if clients wait unequally.
bool shows_the_mean_wait(const std::string& figure) {
  return figure == "acquire.mean" || figure == "acquire.max" ||
         figure == "fairness.longest_wait_seconds";
}

/// Whether it does if all clients wait alike. Otherwise a percentile can stay low while a few
/// clients starve.
bool shows_a_fair_wait(const std::string& figure) {
  constexpr std::array<std::string_view, 5> kPercentiles{
      "acquire.p50", "acquire.p90", "acquire.p95", "acquire.p99", "acquire.p999"};
  return std::find(kPercentiles.begin(), kPercentiles.end(), figure) != kPercentiles.end();
}

/// Why one lock cannot carry the load; empty if it can. The work's p50 stands for its mean.
std::string too_much(const results::Threshold& slo, const Requirements& requirements) {
  if (!requirements.work_p50) return "";
  const Load asked = asked_load(requirements);
  const double most = 1 / *asked.work;
  if (slo.figure == "sections_per_second") {
    const bool wants_more = !is_upper_bound(slo) && slo.comparison != Comparison::not_equal;
    if (!wants_more || slo.bound <= most) return "";
    return fmt::format("one lock carries at most {} sections a second of {}", human_number(most),
                       human_seconds(*asked.work));
  }
  if (!is_upper_bound(slo)) return "";
  if (asked.rate) {
    if (*asked.rate < most) return "";
    return fmt::format(
        "{} sections a second of {} are more than one lock carries ({}): "
        "the queue grows without limit",
        human_number(*asked.rate), human_seconds(*asked.work), human_number(most));
  }
  const double clients = asked.clients.value_or(1);
  const double others = clients - 1;
  // A wait cannot be negative.
  const double bound = std::max(0.0, slo.bound);
  if (others * *asked.work <= bound) return "";
  const double sharing = std::floor(bound / *asked.work) + 1;
  return fmt::format(
      "if {} clients always want one lock, each waits {} at the mean ({} × {}): "
      "at least {:.0f} locks (keys) are needed",
      human_count(clients), human_seconds(others * *asked.work), human_count(others),
      human_seconds(*asked.work), std::ceil(clients / sharing));
}

/// Returns true if that decides the question.
bool cannot_be(Candidate& candidate, const results::Threshold& slo, const std::string& requirement,
               const Requirements& requirements) {
  const std::string why = too_much(slo, requirements);
  if (why.empty()) return false;
  const bool always = slo.figure == "sections_per_second" || shows_the_mean_wait(slo.figure) ||
                      (candidate.strategy->traits.fair && shows_a_fair_wait(slo.figure));
  if (always) {
    candidate.against.push_back(
        {requirement, why + ", whatever the strategy", std::string(kArithmetic)});
  } else if (shows_a_fair_wait(slo.figure)) {
    candidate.conditions.push_back(
        {requirement, why + "; it is not fair: it meets this only while some clients starve",
         std::string(kArithmetic)});
  }
  return always;
}

void judge(Candidate& candidate, const results::Threshold& slo, const std::string& requirement,
           const Requirements& requirements, const Evidence::Runs& measured) {
  std::vector<results::Run> runs;
  for (const results::Run* run : measured.runs) runs.push_back(*run);
  const auto outcomes = results::evaluate(slo, runs);
  const auto worst = std::find_if(outcomes.begin(), outcomes.end(),
                                  [](const auto& outcome) { return !outcome.kept; });
  const auto& outcome = worst == outcomes.end() ? outcomes.front() : *worst;
  std::string what = outcome.measured ? fmt::format("{} is {}", slo.figure,
                                                    shown_figure(slo.figure, *outcome.measured))
                                      : outcome.reason;
  auto others = differences(asked_load(requirements), measured.load);
  // Without contention an objective is easier to meet: met by one client proves nothing, missed
  // does.
  if (outcome.kept && !requirements.clients && measured.load.clients &&
      !measured.load.contended()) {
    const Difference alone{"one client alone (--clients says how many share the lock)", true};
    others.push_back(alone);
  }
  const bool lighter =
      std::all_of(others.begin(), others.end(), [](const Difference& one) { return one.lighter; });
  if (others.empty() || (!outcome.kept && lighter && is_upper_bound(slo))) {
    (outcome.kept ? candidate.in_favour : candidate.against)
        .push_back({requirement, std::move(what), measured.name});
    return;
  }
  std::vector<std::string> words;
  words.reserve(others.size());
  for (const Difference& one : others) words.push_back(one.text);
  candidate.conditions.push_back(
      {requirement,
       fmt::format("not measured under that load: {}{}, but with {}",
                   outcome.kept ? "" : "missed, ", what, fmt::join(words, " and ")),
       measured.name});
}

}  // namespace

void check_demand(Candidate& candidate, const Requirements& requirements) {
  if (!requirements.rate || !requirements.work_p50) return;
  const Load asked = asked_load(requirements);
  const double busy = *asked.rate * *asked.work;
  if (busy < 1) return;
  candidate.conditions.push_back(
      {fmt::format("--rate {}", *requirements.rate),
       fmt::format("one lock carries at most {} sections a second of {}: only with {:.0f} locks "
                   "(keys) or more",
                   human_number(1 / *asked.work), human_seconds(*asked.work), std::floor(busy) + 1),
       std::string(kArithmetic)});
}

void check_slo(Candidate& candidate, const results::Threshold& slo,
               const Requirements& requirements, const Evidence& evidence) {
  const std::string requirement = fmt::format("--slo '{}'", slo.text);
  if (cannot_be(candidate, slo, requirement, requirements)) return;
  const auto measured = evidence.runs_of(candidate.strategy->name, requirements);
  if (measured.runs.empty()) {
    candidate.conditions.push_back({requirement, "not measured", "no run of it in the files"});
    return;
  }
  if (!measured.valid) {
    candidate.conditions.push_back({requirement, "all its runs are invalid", measured.name});
    return;
  }
  if (measured.left_out > 0) {
    candidate.conditions.push_back(
        {requirement,
         fmt::format("{} of {} runs are invalid and left out", measured.left_out,
                     measured.left_out + measured.runs.size()),
         measured.name});
  }
  judge(candidate, slo, requirement, requirements, measured);
}

}  // namespace lockbench::choose
