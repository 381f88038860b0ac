#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "results/report/parts.h"
#include "results/tables/runs.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

using Runs = std::vector<const Run*>;

Cell seconds_cell(const Distribution& distribution, double value) {
  return {distribution.count > 0 ? human_seconds(value) : "–"};
}
Cell votes_cell(std::uint64_t count, bool alarming = false) {
  return {human_count(static_cast<double>(count)), alarming && count > 0 ? Tone::bad : Tone::plain};
}

results::Table columns_of(const Result& result, const std::vector<std::string>& keys) {
  return chosen(run_table(result, {}), keys).value();
}

template <class Is>
Result only(const Result& result, Is is_wanted) {
  Result some;
  std::copy_if(result.runs.begin(), result.runs.end(), std::back_inserter(some.runs), is_wanted);
  return some;
}

double wait_of(const Run& run) {
  return run.wait.round_trip_seconds + run.wait.backoff_seconds + run.wait.notified_seconds;
}

/// Shares of the mean wait: the waits differ by powers of ten. The mean follows the name.
void add_wait(const Result& result, Runs runs, Part& part) {
  std::erase_if(runs, [](const Run* run) { return !(wait_of(*run) > 0); });
  if (runs.empty()) return;
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run* a, const Run* b) { return wait_of(*a) < wait_of(*b); });
  BarChart chart{.title = "Parts of the wait",
                 .note = "The parts of the mean wait of a grant; shortest wait on top.",
                 .form = BarChart::Form::stacked,
                 .x = {"share of the mean wait", Measure::share, Scale::linear},
                 .series = {{"round trips", {}}, {"backoff", {}}, {"notification", {}}}};
  for (const Run* run : runs) {
    const double sum = wait_of(*run);
    chart.categories.push_back(fmt::format("{} · {}", run->strategy, human_seconds(sum)));
    chart.series[0].values.push_back(run->wait.round_trip_seconds / sum);
    chart.series[1].values.push_back(run->wait.backoff_seconds / sum);
    chart.series[2].values.push_back(run->wait.notified_seconds / sum);
  }
  Table table =
      captioned("Parts of the wait, in figures",
                columns_of(result, {"strategy", "wait_mean_seconds", "wait_round_trip_seconds",
                                    "wait_backoff_seconds", "wait_notified_seconds",
                                    "attempts_per_grant", "commands_per_section", "herd_factor"}));
  part.sections.push_back({.title = "Anatomy of the wait",
                           .intro = {},
                           .blocks = {std::move(chart), std::move(table)}});
}

/// Handoff times, and how evenly clients got the lock.
void add_fairness(const Result& result, Runs runs, Part& part) {
  std::erase_if(runs, [](const Run* run) { return run->fairness.per_client.size() < 2; });
  if (runs.empty()) return;
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run* a, const Run* b) { return a->fairness.jain > b->fairness.jain; });
  BarChart handoff{.title = "Handoff",
                   .note = "From one client's release to the grant of one that was waiting.",
                   .form = BarChart::Form::dots,
                   .x = {"handoff", Measure::seconds, Scale::log},
                   .series = {{"p50", {}}, {"p99", {}}}};
  BarChart jain{
      .title = "Fairness",
      .note = "Jain's index over the clients: 1 means that all had equally many sections.",
      .form = BarChart::Form::bars,
      .x = {"Jain's index", Measure::number, Scale::linear},
      .series = {{"Jain's index", {}}}};
  bool handed_over = false;
  for (const Run* run : runs) {
    const Distribution& time = run->handoff;
    handed_over = handed_over || time.count > 0;
    handoff.categories.push_back(run->strategy);
    handoff.series[0].values.push_back(time.count > 0 ? time.p50 : kNone);
    handoff.series[1].values.push_back(time.count > 0 ? time.p99 : kNone);
    jain.categories.push_back(run->strategy);
    jain.series[0].values.push_back(run->fairness.jain);
  }
  Section section{.title = "Handoff and fairness"};
  if (handed_over) section.blocks.emplace_back(std::move(handoff));
  section.blocks.emplace_back(std::move(jain));
  section.blocks.emplace_back(captioned(
      "Fairness in figures",
      columns_of(result, {"strategy", "fairness_jain", "longest_wait_seconds", "longest_streak",
                          "least_sections_of_a_client", "most_sections_of_a_client"})));
  part.sections.push_back(std::move(section));
}

Table quorum_table(const Runs& runs) {
  Table table{
      .caption = "Votes of a quorum",
      .titles = {"strategy", "node", "granted", "refused", "failed", "answered p50", "p99"}};
  for (const Run* run : runs) {
    if (!run->quorum) continue;
    const Quorum& quorum = *run->quorum;
    for (std::size_t i = 0; i < quorum.votes.size(); ++i) {
      const NodeVotes& votes = quorum.votes[i];
      const Distribution time =
          i < quorum.node_seconds.size() ? quorum.node_seconds[i] : Distribution();
      table.rows.push_back({{run->strategy},
                            {votes.node},
                            votes_cell(votes.granted),
                            votes_cell(votes.refused),
                            votes_cell(votes.failed, true),
                            seconds_cell(time, time.p50),
                            seconds_cell(time, time.p99)});
    }
  }
  return table;
}

}  // namespace

void add_cost_sections(const Result& result, const std::vector<Group>& groups, Part& part) {
  Runs runs;
  for (const Group& group : groups) runs.push_back(&group.typical());
  add_wait(result, runs, part);
  add_fairness(result, runs, part);
  const Result renewing = only(result, [](const Run& run) { return run.renewal.has_value(); });
  const Result replicated =
      only(result, [](const Run& run) { return run.replication.has_value(); });
  Section section{.title = "Renewal, votes and replicas"};
  for (Table table :
       {captioned("Renewal of held locks",
                  columns_of(renewing, {"strategy", "renewals", "renewal_failures", "renewals_lost",
                                        "renewal_commands_per_second", "renewal_p99_seconds",
                                        "renewal_slip_p99_seconds", "renewal_margin_p50_seconds",
                                        "renewal_margin_min_seconds"})),
        quorum_table(runs),
        captioned("Waiting for replicas",
                  columns_of(replicated, {"strategy", "replicas", "replica_refusals",
                                          "replica_wait_p50_seconds", "replica_wait_p99_seconds",
                                          "replica_wait_max_seconds"}))}) {
    if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  }
  if (!section.blocks.empty()) part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
