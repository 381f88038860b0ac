#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "results/report/parts.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Runs = std::vector<const Run*>;

Cell seconds_cell(const Distribution& distribution, double value) {
  return {distribution.count > 0 ? human_seconds(value) : "–"};
}
Cell number_cell(double value) { return {human_number(value)}; }
Cell count_cell(std::uint64_t count, bool alarming = false) {
  return {human_count(static_cast<double>(count)), alarming && count > 0 ? Tone::bad : Tone::plain,
          count > 0};
}

double wait_of(const Run& run) {
  return run.wait.round_trip_seconds + run.wait.backoff_seconds + run.wait.notified_seconds;
}

/// Shares, as the waits themselves differ by powers of ten; the mean stands with the name.
void add_wait(Runs runs, Part& part) {
  std::erase_if(runs, [](const Run* run) { return !(wait_of(*run) > 0); });
  if (runs.empty()) return;
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run* a, const Run* b) { return wait_of(*a) < wait_of(*b); });
  BarChart chart{.title = "Where a grant's wait goes",
                 .note = "The mean wait of a grant, taken apart; shortest wait on top.",
                 .form = BarChart::Form::stacked,
                 .x = {"share of the mean wait", Measure::share, Scale::linear},
                 .series = {{"round trips", {}}, {"backoff", {}}, {"waiting to be told", {}}}};
  Table table{.caption = "Where a grant's wait goes, in figures",
              .titles = {"strategy", "mean wait", "round trips", "backoff", "waiting to be told",
                         "attempts a grant", "commands a section", "woken a grant"}};
  for (const Run* run : runs) {
    const double sum = wait_of(*run);
    chart.categories.push_back(fmt::format("{} · {}", run->strategy, human_seconds(sum)));
    chart.series[0].values.push_back(run->wait.round_trip_seconds / sum);
    chart.series[1].values.push_back(run->wait.backoff_seconds / sum);
    chart.series[2].values.push_back(run->wait.notified_seconds / sum);
    table.rows.push_back({{run->strategy},
                          {human_seconds(sum)},
                          {human_seconds(run->wait.round_trip_seconds)},
                          {human_seconds(run->wait.backoff_seconds)},
                          {human_seconds(run->wait.notified_seconds)},
                          number_cell(run->attempts_per_grant),
                          number_cell(run->commands_per_section),
                          {run->herd_factor ? human_number(*run->herd_factor) : "–"}});
  }
  part.sections.push_back({.title = "Anatomy of the wait",
                           .intro = {},
                           .blocks = {std::move(chart), std::move(table)}});
}

/// Times to hand over and shares of the clients.
void add_fairness(Runs runs, Part& part) {
  std::erase_if(runs, [](const Run* run) { return run->fairness.per_client.size() < 2; });
  if (runs.empty()) return;
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run* a, const Run* b) { return a->fairness.jain > b->fairness.jain; });
  BarChart handoff{.title = "Handing over",
                   .note = "From one client's release to the grant of one that was waiting.",
                   .form = BarChart::Form::dots,
                   .x = {"handoff", Measure::seconds, Scale::log},
                   .series = {{"p50", {}}, {"p99", {}}}};
  BarChart jain{.title = "Fairness",
                .note = "Jain's index over the clients: at 1 all got the same.",
                .form = BarChart::Form::bars,
                .x = {"Jain's index", Measure::number, Scale::linear},
                .series = {{"Jain's index", {}}}};
  Table table{.caption = "Fairness in figures",
              .titles = {"strategy", "Jain's index", "longest wait", "longest streak of one client",
                         "sections of the least client", "of the most"}};
  bool handed_over = false;
  for (const Run* run : runs) {
    const Distribution& time = run->handoff;
    handed_over = handed_over || time.count > 0;
    handoff.categories.push_back(run->strategy);
    handoff.series[0].values.push_back(time.count > 0 ? time.p50 : kNone);
    handoff.series[1].values.push_back(time.count > 0 ? time.p99 : kNone);
    jain.categories.push_back(run->strategy);
    jain.series[0].values.push_back(run->fairness.jain);
    const auto [least, most] = std::ranges::minmax(run->fairness.per_client);
    table.rows.push_back({{run->strategy},
                          number_cell(run->fairness.jain),
                          {human_seconds(run->fairness.longest_wait_seconds)},
                          count_cell(run->fairness.longest_streak),
                          count_cell(least),
                          count_cell(most)});
  }
  Section section{.title = "Handoff and fairness"};
  if (handed_over) section.blocks.emplace_back(std::move(handoff));
  section.blocks.emplace_back(std::move(jain));
  section.blocks.emplace_back(std::move(table));
  part.sections.push_back(std::move(section));
}

Table renewal_table(const Runs& runs) {
  Table table{.caption = "Renewal of held locks",
              .titles = {"strategy", "renewed", "failed", "found lost", "commands a second",
                         "took p99", "late p99", "validity left p50", "least"}};
  for (const Run* run : runs) {
    if (!run->renewal) continue;
    const Renewal& renewal = *run->renewal;
    table.rows.push_back({{run->strategy},
                          count_cell(renewal.renewals),
                          count_cell(renewal.failures, true),
                          count_cell(renewal.lost, true),
                          number_cell(renewal.commands_per_second),
                          seconds_cell(renewal.duration, renewal.duration.p99),
                          seconds_cell(renewal.slip, renewal.slip.p99),
                          seconds_cell(renewal.margin, renewal.margin.p50),
                          seconds_cell(renewal.margin, renewal.margin.min)});
  }
  return table;
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
                            count_cell(votes.granted),
                            count_cell(votes.refused),
                            count_cell(votes.failed, true),
                            seconds_cell(time, time.p50),
                            seconds_cell(time, time.p99)});
    }
  }
  return table;
}

Table replication_table(const Runs& runs) {
  Table table{.caption = "Waiting for replicas",
              .titles = {"strategy", "must acknowledge", "refused", "waited p50", "p99", "max"}};
  for (const Run* run : runs) {
    if (!run->replication) continue;
    const Replication& replication = *run->replication;
    table.rows.push_back({{run->strategy},
                          count_cell(replication.replicas),
                          count_cell(replication.refusals, true),
                          seconds_cell(replication.wait, replication.wait.p50),
                          seconds_cell(replication.wait, replication.wait.p99),
                          seconds_cell(replication.wait, replication.wait.max)});
  }
  return table;
}

}  // namespace

void add_cost_sections(const std::vector<Group>& groups, Part& part) {
  Runs runs;
  for (const Group& group : groups) runs.push_back(&group.typical());
  add_wait(runs, part);
  add_fairness(runs, part);
  Section section{.title = "Renewal, votes and replicas"};
  for (Table table : {renewal_table(runs), quorum_table(runs), replication_table(runs)}) {
    if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  }
  if (!section.blocks.empty()) part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
