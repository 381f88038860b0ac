#include "results/tables/runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "results/file/loads.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

/// The runs that share a row: repetitions of one strategy under one load, or a single run.
struct Group {
  std::vector<const Run*> all;   ///< at least one; they belong to the result
  std::vector<const Run*> runs;  ///< whose figures are shown: the valid ones, or all without any
  std::string flaw;
  std::string load;  ///< only where the result has several

  const Run& first() const { return *runs.front(); }
};

auto median_of(std::string path) {
  return [path = std::move(path)](const Group& group) -> Cell {
    return cell_of(median_figure(group.runs, path));
  };
}

auto share_of(std::string path, std::string whole_path) {
  return [path = std::move(path), whole_path = std::move(whole_path)](const Group& group) -> Cell {
    return ratio_of_sums(group.runs, path, whole_path);
  };
}

auto sum_of(std::string path) {
  return [path = std::move(path)](const Group& group) { return sum_of_figure(group.runs, path); };
}

auto largest_of(std::string path) {
  return [path = std::move(path)](const Group& group) -> Cell {
    std::optional<Figure> largest;
    for (const Run* run : group.runs) {
      Figure found = find_figure(*run, path);
      if (!found.value || (largest && *largest->value > *found.value)) continue;
      largest = std::move(found);
    }
    if (!largest) return {};
    Cell cell(largest->value);
    cell.at_least = largest->at_least;
    return cell;
  };
}

Cell worst_client(const Group& group) {
  return worst_client_cell(largest_of("fairness.by_client.worst_p99")(group), group.runs);
}

/// Empty unless the audit saw a write: without one, no update can be lost.
template <class Fill>
auto if_audited(Fill fill) {
  return [fill](Group group) -> Cell {
    std::erase_if(group.runs, [](const Run* run) { return run->audit.increments == 0; });
    return group.runs.empty() ? Cell() : fill(group);
  };
}

/// Over all runs: a violation counts on any machine.
template <class Fill>
auto of_all(Fill fill) {
  return [fill](Group group) -> Cell {
    group.runs = group.all;
    return fill(group);
  };
}

/// Red if the lock cannot carry the rate: then waits only reflect the length of the run.
Cell lock_taken(const Group& group) {
  Cell cell = median_of("lock_taken")(group);
  if (group.first().load.rate && is_full(group.runs)) cell.tone = Tone::bad;
  return cell;
}

/// "110 ±18%": the median, and the distance of the farthest repetition from it.
Cell throughput(const Group& group) {
  std::vector<double> rates;
  for (const Run* run : group.runs) {
    if (std::isfinite(run->sections_per_second)) rates.push_back(run->sections_per_second);
  }
  const auto center = median(rates);
  if (!center || rates.size() < 2 || *center == 0) return center;
  double farthest = 0;
  for (const double rate : rates) farthest = std::max(farthest, std::abs(rate - *center));
  return {center, Tone::plain,
          fmt::format("{} ±{:.0f}%", human(*center, Unit::number), 100 * farthest / *center)};
}

/// "12–15" if writes of unknown outcome may have taken effect.
Cell lost_updates(const Group& group) {
  const auto least = sum_of_figure(group.runs, "audit.lost_updates");
  if (!least) return {};
  const auto highest = sum_of_figure(group.runs, "audit.lost_updates_max");
  const double most = std::max(*least, highest.value_or(*least));
  std::string text = human(*least, Unit::count);
  if (most > *least) text += "–" + human(most, Unit::count);
  return {least, *least > 0 ? Tone::bad : most > 0 ? Tone::doubtful : Tone::plain, text};
}

/// A count that is bad unless 0.
auto alarm(std::string path) {
  return [path = std::move(path)](const Group& group) -> Cell {
    const auto count = sum_of_figure(group.all, path);
    return {count, count.value_or(0) > 0 ? Tone::bad : Tone::plain};
  };
}

bool all_valid(const Group& group) {
  return std::ranges::all_of(group.all, [](const Run* run) { return run->generator.valid; });
}

/// "3 of 5 valid": the figures are those of these three.
Cell invalid_mark(const Group& group) {
  const bool cut_short = std::ranges::any_of(
      group.all, [](const Run* run) { return run->interrupted.value_or(false); });
  const std::size_t valid = valid_of(group.all).size();
  const bool some = valid > 0 && valid < group.all.size();
  const std::string text = some ? fmt::format("{} of {} valid", valid, group.all.size())
                           : all_valid(group) ? "cut short"
                                              : "invalid";
  return {all_valid(group) && !cut_short ? "" : text, Tone::doubtful};
}

Cell reasons(const Group& group) {
  return fmt::format("{}", fmt::join(group.first().generator.reasons, "; "));
}

auto cost_of(std::optional<Cost> Costs::*member, Unit unit) {
  return [member, unit](const Group& group) -> Cell {
    const auto& costs = group.first().costs;
    return costs && (*costs).*member ? cost_cell(*((*costs).*member), unit) : Cell();
  };
}

/// Grants as a share of the acquisitions that ended.
Cell granted_share(const Group& group) {
  double granted = 0, ended = 0;
  for (const Run* run : group.runs) {
    const Outcomes& of = run->outcomes;
    granted += static_cast<double>(of.acquired);
    ended += static_cast<double>(of.acquired + of.timed_out + of.refused + of.failed + of.unknown);
  }
  return ended > 0 ? Cell(granted / ended) : Cell();
}

Field<Group> only_if_asked(const std::string& key, Unit unit,
                           std::function<Cell(const Group&)> fill) {
  return {{.key = key, .name = key, .unit = unit, .show = Show::if_asked}, std::move(fill)};
}

Field<Group> seconds(std::string key, std::string group, std::string name, int rank,
                     std::function<Cell(const Group&)> fill) {
  return {{std::move(key), std::move(group), std::move(name), Unit::seconds, rank, Show::if_any},
          std::move(fill)};
}

Field<Group> event(std::string key, std::string group, std::string name, int rank,
                   std::string path) {
  return {{std::move(key), std::move(group), std::move(name), Unit::count, rank, Show::if_any},
          sum_of(std::move(path))};
}

/// Every column of a run. For lack of room, columns of only some loads are left out first; then
/// rare events, with their counts in a note; then explanations of a lock's figures; the figures
/// that people compare go last. With several locks per section, the time until a section has all of
/// them ranks before the time until it has one.
const std::vector<Field<Group>> run_fields{
    {{"strategy", "", "strategy"}, [](auto& group) { return group.first().strategy; }},
    only_if_asked("backend", Unit::text, [](auto& group) { return group.first().backend; }),
    only_if_asked("repetition", Unit::count, median_of("repetition")),
    {{"load_label", "", "load", Unit::text, 0, Show::if_any, false}, &Group::load},
    only_if_asked("load", Unit::text, [](auto& group) { return group.first().load.name; }),
    only_if_asked("clients", Unit::count, median_of("load.clients")),
    only_if_asked("hold_mean_seconds", Unit::seconds, median_of("load.hold_seconds")),
    only_if_asked("rate", Unit::number, median_of("load.rate")),
    only_if_asked("rtt_seconds", Unit::seconds, median_of("load.rtt_seconds")),
    only_if_asked("duration_seconds", Unit::seconds, median_of("duration_seconds")),
    only_if_asked("sections", Unit::count, sum_of("sections")),
    seconds("longest_wait_seconds", "longest", "wait", 1,
            largest_of("fairness.longest_wait_seconds")),
    seconds("worst_client_p99_seconds", "worst", "client p99", 2, worst_client),
    {{"sections_per_second", "sections", "/s", Unit::number, 3}, throughput},
    {{"lock_taken", "lock", "taken", Unit::share, 9, Show::if_any}, lock_taken},
    seconds("acquire_p50_seconds", "acquire", "p50", 7, median_of("acquire.p50")),
    seconds("acquire_p99_seconds", "acquire", "p99", 6, median_of("acquire.p99")),
    seconds("echo_p50_seconds", "program's", "echo p50", 7, median_of("program.echo.p50")),
    only_if_asked("acquire_p90_seconds", Unit::seconds, median_of("acquire.p90")),
    only_if_asked("acquire_p95_seconds", Unit::seconds, median_of("acquire.p95")),
    {{"acquire_p999_seconds", "acquire", "p99.9", Unit::seconds, 8, Show::if_asked},
     median_of("acquire.p999")},
    only_if_asked("acquire_max_seconds", Unit::seconds, largest_of("acquire.max")),
    seconds("transaction_p50_seconds", "all locks", "p50", 6,
            median_of("transactions.acquire.p50")),
    seconds("transaction_p99_seconds", "all locks", "p99", 6,
            median_of("transactions.acquire.p99")),
    event("transaction_aborts", "", "aborts", 29, "transactions.aborts"),
    event("transaction_deadlocks", "dead-", "locks", 30, "transactions.deadlocks"),
    seconds("exclusive_p99_seconds", "exclusive", "p99", 31,
            median_of("acquire_by_mode.exclusive.p99")),
    seconds("shared_p99_seconds", "shared", "p99", 32, median_of("acquire_by_mode.shared.p99")),
    seconds("handoff_p50_seconds", "handoff", "p50", 8, median_of("handoff.p50")),
    {{"handed_over_share", "handed", "over", Unit::share, 11, Show::if_any},
     share_of("direct_handoffs", "awaited_releases")},
    {{"overtakings_per_grant", "overtaken/", "grant", Unit::number, 20, Show::if_asked},
     share_of("overtakings", "outcomes.acquired")},
    {{"commands_per_section", "cmds/", "sect.", Unit::number, 8},
     median_of("commands_per_section")},
    {{"fairness_jain", "fair-", "ness", Unit::number, 10}, if_audited(median_of("fairness.jain"))},
    seconds("wait_round_trip_seconds", "wait:", "trips", 17, median_of("wait.round_trip_seconds")),
    seconds("wait_backoff_seconds", "wait:", "backoff", 18, median_of("wait.backoff_seconds")),
    seconds("wait_notified_seconds", "wait:", "notified", 19, median_of("wait.notified_seconds")),
    {{"herd_factor", "woken/", "grant", Unit::number, 23, Show::if_any}, median_of("herd_factor")},
    only_if_asked("acquired", Unit::count, sum_of("outcomes.acquired")),
    event("timed_out", "", "timed out", 14, "outcomes.timed_out"),
    event("refused", "", "refused", 15, "outcomes.refused"),
    event("failed", "", "failed", 12, "outcomes.failed"),
    event("unknown", "", "unknown", 13, "outcomes.unknown"),
    only_if_asked("abandoned", Unit::count, sum_of("outcomes.abandoned")),
    {{"lost_updates", "lost", "updates", Unit::count, 4}, of_all(if_audited(lost_updates))},
    {{"overlaps", "", "overlaps", Unit::count, 16}, alarm("audit.overlaps")},
    {{"server_commands_per_section", "server", "cmds/sect.", Unit::number, 33, Show::if_asked},
     median_of("server_commands_per_section")},
    only_if_asked("bytes_per_section", Unit::number, median_of("bytes_per_section")),
    only_if_asked("violations_per_million", Unit::number,
                  median_of("audit.violations_per_million")),
    event("stale_writes_rejected", "stale", "rejected", 20, "audit.stale_writes_rejected"),
    {{"unprotected", "unpro-", "tected", Unit::count, 12, Show::if_any},
     alarm("application.unprotected")},
    event("pool_timeouts", "no con-", "nection", 13, "application.pool_timeouts"),
    seconds("pool_wait_p99_seconds", "pool", "wait p99", 14,
            median_of("application.pool_wait.p99")),
    event("leases_lost", "leases", "lost", 21, "leases_lost"),
    event("renewals", "", "renewals", 22, "renewal.renewals"),
    {{"rounds_per_grant", "rounds/", "grant", Unit::number, 24, Show::if_any},
     median_of("quorum.rounds_per_grant")},
    event("split_votes", "split", "votes", 25, "quorum.split_votes"),
    seconds("validity_p50_seconds", "validity", "p50", 26, median_of("quorum.validity.p50")),
    seconds("replica_wait_p50_seconds", "replica", "wait p50", 27,
            median_of("replication.wait.p50")),
    seconds("replica_wait_p99_seconds", "replica", "wait p99", 28,
            median_of("replication.wait.p99")),
    {{"verdict", "", "verdict", Unit::text, 5},
     [](auto& group) { return verdict_cell(group.all); }},
    only_if_asked("valid", Unit::text, all_valid),
    {{"run", "", "run", Unit::text, 11, Show::if_any, false}, invalid_mark},
    only_if_asked("invalid_because", Unit::text, reasons),
    {{"falls_to", "", "falls to", Unit::text, 10, Show::if_any, false}, &Group::flaw},
    {{"renewal_commands_per_second", "commands", "/s", Unit::number, 0, Show::if_asked},
     median_of("renewal.commands_per_second")},
    {{"renewal_slip_p99_seconds", "late", "p99", Unit::seconds, 0, Show::if_asked},
     median_of("renewal.slip.p99")},
    {{"renewal_margin_min_seconds", "validity left", "least", Unit::seconds, 0, Show::if_asked},
     median_of("renewal.margin.min")},
    {{"held_locks", "locks", "held", Unit::count, 0, Show::if_asked}, median_of("load.held_locks")},
    {{"nodes", "", "nodes", Unit::count, 0, Show::if_asked}, median_of("load.nodes.count")},
    {{"nodes_down", "", "down", Unit::count, 0, Show::if_asked}, median_of("load.nodes.down")},
    {{"nodes_frozen", "", "frozen", Unit::count, 0, Show::if_asked},
     median_of("load.nodes.frozen")},
    {{"nodes_slow", "", "slow", Unit::count, 0, Show::if_asked}, median_of("load.nodes.slow")},
    {{"slow_seconds", "slow", "by", Unit::seconds, 0, Show::if_asked},
     median_of("load.nodes.slow_seconds")},
    {{"throughput_cost", "cost of", "renewal", Unit::share, 2, Show::if_any},
     cost_of(&Costs::throughput, Unit::share)},
    seconds("node_cost_seconds", "cost of", "a node", 2,
            cost_of(&Costs::node_seconds, Unit::seconds)),
    {{"granted_share", "", "granted", Unit::share, 0, Show::if_asked}, granted_share},
};

std::vector<Group> groups_of(const Result& result, const KnownFlaws& flaws, bool merge) {
  std::vector<Group> groups;
  const bool several = loads_differ(result);
  for (const Run& run : result.runs) {
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return merge && group.first().strategy == run.strategy && group.first().load == run.load;
    });
    if (same != groups.end()) {
      same->all.push_back(&run);
      continue;
    }
    const auto flaw = flaws.find(run.strategy);
    groups.push_back({{&run},
                      {&run},
                      flaw == flaws.end() ? "" : flaw->second.hazard,
                      several ? label(run.load, result) : ""});
  }
  for (Group& group : groups) group.runs = counting_of(group.all);
  return groups;
}

/// The points of a sweep: by load and strategy, then by clients and rate.
std::vector<Group> points_of_sweep(const Result& result) {
  std::vector<Group> groups = groups_of(result, {}, true);
  std::map<std::string, std::size_t> places;
  for (const Group& group : groups) {
    for (const auto& name : {group.first().load.name, group.first().strategy}) {
      places.emplace(name, places.size());
    }
  }
  std::ranges::stable_sort(groups, {}, [&](const Group& group) {
    const Load& load = group.first().load;
    return std::tuple(places.at(load.name), places.at(group.first().strategy), load.clients,
                      load.rate.value_or(0));
  });
  return groups;
}

struct RankRow : Rank {
  std::string run;
};

/// Remarks on a rank.
Cell remark(const RankRow& row) {
  std::vector<std::string> words;
  if (row.lost) words.emplace_back("lost");
  if (row.outlier) words.emplace_back("outlier");
  if (!row.notes.empty() && !row.lost) words.emplace_back("see below");
  return {fmt::format("{}", fmt::join(words, ", ")), words.empty() ? Tone::plain : Tone::doubtful};
}

const std::vector<Field<RankRow>> rank_fields{
    {{"run", "", "run", Unit::text, 3}, &RankRow::run},
    {{"rank", "", "rank", Unit::count}, &RankRow::rank},
    {{"host", "", "host"}, &RankRow::host},
    {{"clients", "", "clients", Unit::count, 5}, &RankRow::clients},
    {{"share", "share of", "sections", Unit::share, 2}, &RankRow::share},
    {{"acquire_p50_seconds", "acquire", "p50", Unit::seconds, 1}, &RankRow::acquire_p50},
    {{"acquire_p99_seconds", "acquire", "p99", Unit::seconds, 1}, &RankRow::acquire_p99},
    {{"cpu_share", "host's", "CPU", Unit::share, 3}, &RankRow::cpu_share},
    {{"lag_p99_seconds", "lag", "p99", Unit::seconds, 4, Show::if_any}, &RankRow::lag_p99_seconds},
    {{"late_seconds", "began", "late by", Unit::seconds, 6, Show::if_asked},
     &RankRow::late_seconds},
    {{"remark", "", "", Unit::text, 0, Show::if_any}, remark},
};

}  // namespace

Table run_table(const Result& result, const KnownFlaws& flaws) {
  return table_of(run_fields, groups_of(result, flaws, true));
}

Table table_of_each_run(const Result& result, const KnownFlaws& flaws) {
  return table_of(run_fields, groups_of(result, flaws, false));
}

Table sweep_table(const Result& result, const std::string& load) {
  std::vector<Field<Group>> fields;
  for (const std::string_view key :
       {"strategy", "clients", "rate", "lock_taken", "sections_per_second", "acquire_p50_seconds",
        "acquire_p99_seconds", "acquire_p999_seconds", "longest_wait_seconds", "verdict"}) {
    fields.push_back(*std::ranges::find(
        run_fields, key, [](const auto& one) { return std::string_view(one.column.key); }));
    fields.back().column.show = Show::if_any;
  }
  std::vector<Group> groups = points_of_sweep(result);
  std::erase_if(groups, [&](const Group& group) { return group.first().load.name != load; });
  return shown(table_of(fields, groups));
}

std::vector<std::string> full_locks(const Result& result) {
  std::vector<std::string> said;
  std::set<std::pair<std::string, std::string>> full;
  for (const Group& group : points_of_sweep(result)) {
    const Run& run = group.first();
    // In a closed loop a lock may be full as well, but waits are bounded by the number of clients.
    const bool too_much = run.load.rate && is_full(group.runs);
    if (!too_much || !full.emplace(run.load.name, run.strategy).second) continue;
    const auto taken = median_figure(group.runs, "lock_taken");
    const auto served = median_figure(group.runs, "sections_per_second");
    said.push_back(fmt::format(
        "Full: {} from {} on{}: {}/s are served, and waits only grow with the length of the run.",
        run.strategy, label(run.load, result),
        taken ? fmt::format(" (the lock is taken {} of the time)", human(taken->value, Unit::share))
              : "",
        human_number(served ? served->value : 0)));
  }
  return said;
}

Table rank_table(const Result& result) {
  std::vector<RankRow> rows;
  for (const Run& run : result.runs) {
    for (const Rank& rank : run.ranks) rows.push_back({rank, name_of(run, result)});
  }
  return table_of(rank_fields, rows);
}

}  // namespace lockbench::results
