#include "results/file/loads.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/stats/load_figures.h"
#include "results/stats/statistics.h"
#include "results/tables/runs.h"

namespace lockbench::results {
namespace {

constexpr const char* kOld = " (old)";
constexpr const char* kWorstClient = "fairness.by_client.worst_p99";

/// The strategy that replaces this one in practice; empty: none.
std::string successor(const KnownFlaws& flaws, const std::string& strategy) {
  const auto found = flaws.find(strategy);
  return found == flaws.end() ? "" : found->second.superseded_by;
}

/// The runs of one strategy under one load.
struct Row {
  const StrategyLoads* strategy = nullptr;
  std::string load;
  int tier = 0;  ///< 0: not measured
  bool superseded = false;
};
using RowField = Field<Row>;

/// Strategies share a tier if the deciding figure cannot tell them apart.
const std::vector<RowField> first_fields{
    {{"strategy", "", "strategy"},
     [](const Row& row) { return row.strategy->strategy + (row.superseded ? kOld : ""); }},
    {{"tier", "", "tier", Unit::count, 2},
     [](const Row& row) { return row.tier == 0 ? Cell() : Cell(row.tier); }}};

/// Without a valid run, as doubtful.
Cell shown_figure(const Row& row, std::size_t point, const std::string& path) {
  const std::vector<const Run*> runs = counting_of(row.strategy->runs_at(row.load, point));
  Cell cell = cell_of(median_figure(runs, path));
  if (path == kWorstClient) cell = worst_client_cell(std::move(cell), runs);
  if (valid_of(runs).empty()) cell.tone = Tone::doubtful;
  return cell;
}

/// "3 of 5 valid", at the point with the fewest; empty if all are.
Cell valid_share(const Row& row) {
  std::size_t fewest = 0, of = 0;
  for (std::size_t point = 0; point < row.strategy->points_of(row.load); ++point) {
    const std::size_t valid = valid_of(row.strategy->runs_at(row.load, point)).size();
    const std::size_t all = row.strategy->runs_at(row.load, point).size();
    if (valid == all || (of > 0 && valid >= fewest)) continue;
    fewest = valid;
    of = all;
  }
  if (of == 0) return {};
  return {fmt::format("{} of {} valid", fewest, of), Tone::doubtful};
}

/// The median of a figure over the repetitions of a point.
RowField at_point(Column shown, std::size_t point, std::string path) {
  return {std::move(shown), [point, path = std::move(path)](const Row& row) {
            return shown_figure(row, point, path);
          }};
}

/// Time to acquire and release for a client alone, at that point, by its valid runs.
std::optional<LoadFigure> section_cost(const StrategyLoads& strategy, std::size_t point) {
  const std::vector<const Run*> runs = valid_of(strategy.runs_at("alone", point));
  const auto acquire = median_figure(runs, "acquire.p50");
  if (!acquire) return std::nullopt;
  const auto release = median_figure(runs, "release.p50");
  return LoadFigure{acquire->value + (release ? release->value : 0), acquire->at_least};
}

/// How much longer a section takes with a longer network, per round trip.
Cell round_trips(const Row& row) {
  const auto near = section_cost(*row.strategy, 0), far = section_cost(*row.strategy, 1);
  if (!near || !far) return {};
  const std::vector<Load>& points = row.strategy->points.at("alone");
  return (far->value - near->value) / (points[1].rtt_seconds - points[0].rtt_seconds);
}

std::vector<RowField> alone_fields(const std::vector<Load>& points) {
  std::vector<RowField> fields = first_fields;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const double rtt = points[point].rtt_seconds;
    const std::string where = rtt > 0 ? "RTT " + human_seconds(rtt) : "loopback";
    const std::string key = rtt > 0 ? "far" : "near";
    const int rank = static_cast<int>(point);
    fields.push_back(
        at_point({key + "_acquire_p50_seconds", where, "acquire", Unit::seconds, 2 + rank}, point,
                 "acquire.p50"));
    fields.push_back(
        at_point({key + "_release_p50_seconds", where, "release", Unit::seconds, 6 + rank}, point,
                 "release.p50"));
  }
  fields.insert(
      fields.end(),
      {{{"round_trips_per_section", "round", "trips", Unit::number, 1}, round_trips},
       at_point({"commands_per_section", "cmds/", "sect.", Unit::number, 4}, 0,
                "commands_per_section"),
       at_point({"bytes_per_section", "bytes/", "sect.", Unit::number, 5}, points.size() - 1,
                "bytes_per_section"),
       at_point({"server_cpu_seconds_per_section", "server", "CPU/sect.", Unit::seconds, 3}, 0,
                "server_cpu_seconds_per_section")});
  return fields;
}

/// A percentile. If too little was served, it is left out, and one column says how much was served.
RowField response(Column shown, std::size_t point, std::string path, bool says_share) {
  return {
      std::move(shown), [point, path = std::move(path), says_share](const Row& row) -> Cell {
        const auto served = served_share(counting_of(row.strategy->runs_at(row.load, point)));
        if (!served || *served >= kServed) return shown_figure(row, point, path);
        if (!says_share) return {};
        return {std::optional<double>(), Tone::bad, fmt::format("{:.0f} % served", 100 * *served)};
      }};
}

std::vector<RowField> demand_fields(const std::vector<Load>& points) {
  std::vector<RowField> fields = first_fields;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const std::string at = fmt::format("{}/s", human_number(points[point].rate.value_or(0)));
    const std::string key = fmt::format("point{}_", point + 1);
    const auto add = [&](const char* name, const char* path, int rank, bool says_share = false) {
      fields.push_back(response({key + name + "_seconds", at, name, Unit::seconds, rank}, point,
                                path, says_share));
    };
    const bool last = point + 1 == points.size();
    add("p50", "acquire.p50", last ? 3 : 6);
    add("p99", "acquire.p99", last ? 1 : 4, true);
    if (!last) continue;
    add("p99.9", "acquire.p999", 5);
    fields.push_back(
        response({key + "worst_client_p99_seconds", "worst", "client p99", Unit::seconds, 2}, point,
                 kWorstClient, false));
  }
  return fields;
}

/// Whether every section excludes every other one.
bool has_one_exclusive_key(const Result& result) {
  const bool one =
      text_in(result.workload, "keys").empty() && workload_number(result, "keys").value_or(1) == 1;
  return one && workload_number(result, "shared_share").value_or(0) == 0;
}

/// Throughput as a share of the ideal: one key with instant handoffs.
Cell share_of_ideal(const Row& row) {
  const auto rate =
      median_figure(counting_of(row.strategy->runs_at(row.load, 0)), "sections_per_second");
  const double hold = row.strategy->points.at(row.load).front().hold_seconds;
  return rate && hold > 0 ? Cell(rate->value * hold) : Cell();
}

RowField share_at_first_point(Column shown, std::string part, std::string whole) {
  return {std::move(shown), [part, whole](const Row& row) -> Cell {
            return ratio_of_sums(counting_of(row.strategy->runs_at(row.load, 0)), part, whole);
          }};
}

std::vector<RowField> closed_fields(const Result& result) {
  std::vector<RowField> fields = first_fields;
  fields.insert(
      fields.end(),
      {at_point({"longest_wait_seconds", "longest", "wait", Unit::seconds, 1}, 0,
                "fairness.longest_wait_seconds"),
       at_point({"worst_client_p99_seconds", "worst", "client p99", Unit::seconds, 2}, 0,
                kWorstClient),
       at_point({"sections_per_second", "sections", "/s", Unit::number, 4}, 0,
                "sections_per_second"),
       {{"share_of_ideal", "of", "1/hold", Unit::share, 5}, share_of_ideal},
       share_at_first_point({"handed_over_share", "handed", "over", Unit::share, 6},
                            "direct_handoffs", "awaited_releases"),
       share_at_first_point({"overtakings_per_grant", "overtaken/", "grant", Unit::number, 7},
                            "overtakings", "outcomes.acquired"),
       at_point({"violations_per_million", "violations", "per M ≤", Unit::number, 3}, 0,
                "audit.violations_per_million"),
       {{"verdict", "", "verdict", Unit::text, 1},
        [](const Row& row) { return verdict_cell(row.strategy->runs_of(row.load)); }}});
  if (!has_one_exclusive_key(result)) {
    std::erase_if(fields, [](const RowField& one) { return one.column.key == "share_of_ideal"; });
  }
  return fields;
}

std::string_view question_of(const std::string& load) {
  if (load == "alone") return "alone: what a section costs one client";
  if (load == "demand") return "demand: how long a client waits below the capacity of the lock";
  if (load == "saturated") return "saturated: who is served while the lock is never free";
  return "reacquire: clients that take the lock again immediately";
}

std::string title_of(const std::string& load, const std::vector<Load>& points,
                     const Result& result) {
  const Load& first = points.front();
  const std::string clients =
      is_swept(result, "clients")
          ? ""
          : fmt::format("{} client{}, ", first.clients, first.clients == 1 ? "" : "s");
  return fmt::format("{} ({}hold {})", question_of(load), clients,
                     human_seconds(first.hold_seconds));
}

std::string bounded(const LoadFigure& figure) {
  return (figure.at_least ? "at least " : "") + human_seconds(figure.value);
}

struct Ranked {
  std::string strategy;
  LoadFigure figure;
};

/// The figures of these strategies, lowest first.
template <class FigureOf>
std::vector<Ranked> ranked(const std::vector<const StrategyLoads*>& strategies,
                           FigureOf figure_of) {
  std::vector<Ranked> all;
  for (const StrategyLoads* one : strategies) {
    if (const std::optional<LoadFigure> figure = figure_of(*one)) {
      all.push_back({one->strategy, *figure});
    }
  }
  std::ranges::stable_sort(
      all, [](const Ranked& a, const Ranked& b) { return a.figure.value < b.figure.value; });
  return all;
}

/// "Cheapest ...: a and b with 2.1 ms to 2.3 ms; dearest: c with 9 ms." All strategies of the best
/// tier are named.
std::string extremes(std::string_view best, std::string_view worst, const std::vector<Ranked>& all,
                     const std::map<std::string, int>& places) {
  std::vector<std::string> leaders;
  const std::string first = bounded(all.front().figure);
  std::string last;
  for (const Ranked& one : all) {
    if (places.at(one.strategy) != places.at(all.front().strategy)) continue;
    leaders.push_back(one.strategy);
    last = bounded(one.figure);
  }
  std::string text = fmt::format("{}: {} with {}", best, listed(leaders), first);
  if (last != first) text += " to " + last;
  if (leaders.size() < all.size()) {
    text += fmt::format("; {}: {} with {}", worst, all.back().strategy, bounded(all.back().figure));
  }
  return text + ".";
}

/// Upper bound on violations in a million contended grants, over all runs of a strategy, with a
/// confidence of 95 %.
double violations_bound(const StrategyLoads& strategy) {
  std::uint64_t violations = 0, contended = 0;
  for (const Run* run : strategy.runs) {
    const Audit& audit = run->audit;
    violations += std::max({audit.lost_updates, audit.overlaps, audit.fence_regressions});
    contended += audit.contended_grants;
  }
  return most_per_million(violations, contended).value_or(0);
}

/// `advisable`: the strategies that are not superseded.
std::string safe_sentence(const std::vector<const StrategyLoads*>& safe,
                          const std::vector<const StrategyLoads*>& advisable) {
  std::vector<std::string> names, untested;
  double most = 0;
  for (const StrategyLoads* one : safe) {
    names.push_back(one->strategy);
    most = std::max(most, violations_bound(*one));
  }
  if (names.empty()) return "Safe: no strategy was tested enough to say so.";
  for (const StrategyLoads* one : advisable) {
    const bool known = one->is_safe() || one->broke_exclusion() || one->counted();
    if (one->backend != "local" && !known) {
      untested.push_back(one->strategy);
    }
  }
  std::string text = fmt::format(
      "Safe under contention while nothing fails: {} (no violation; with 95 % confidence at most "
      "{} in a million contended grants).",
      listed(names), human_number(most));
  if (!untested.empty()) text += fmt::format(" Not tested enough: {}.", listed(untested));
  return text;
}

/// Of the controls without a lock; empty if there are none.
std::string counted_sentence(const std::vector<StrategyLoads>& all) {
  std::vector<std::string> names;
  for (const StrategyLoads& one : all) {
    const auto attempts = median_figure(one.runs, "attempts_per_grant");
    if (!one.counted() || !attempts) continue;
    names.push_back(
        fmt::format("{} ({} attempts for each)", one.strategy, human_number(attempts->value)));
  }
  if (names.empty()) return {};
  return fmt::format("No lock and no lost update: the updates of {}.", listed(names));
}

}  // namespace

Cell cell_of(const std::optional<LoadFigure>& figure) {
  if (!figure) return {};
  Cell cell = figure->value;
  cell.at_least = figure->at_least;
  return cell;
}

Cell worst_client_cell(Cell p99, const std::vector<const Run*>& runs) {
  const auto* const value = std::get_if<double>(&p99.value);
  const bool of_few = std::ranges::any_of(runs, [](const Run* run) {
    return run->fairness.by_client && run->fairness.by_client->worst_is_longest;
  });
  if (value != nullptr && of_few) {
    p99.text = (p99.at_least ? "≥ max " : "max ") + human_seconds(*value);
  }
  return p99;
}

bool is_full(const std::vector<const Run*>& runs) {
  constexpr double kFull = 0.95;
  auto valid = valid_of(runs);
  // While a fault strikes, sections wait for the store and not for the lock.
  std::erase_if(valid, [](const Run* run) { return !run->faults.empty(); });
  if (valid.empty()) return false;
  const auto taken = median_figure(valid, "lock_taken");
  return (taken && taken->value >= kFull) || served_share(valid, true).value_or(1) < kServed;
}

Cell verdict_cell(const std::vector<const Run*>& runs) {
  const Verdict worst = worst_verdict(runs);
  const bool good = worst == Verdict::exclusive || worst == Verdict::counted;
  const bool bad = worst == Verdict::violated;
  return {to_string(worst), good ? Tone::good : bad ? Tone::bad : Tone::doubtful};
}

std::vector<Block> load_tables(const Result& result, const KnownFlaws& flaws) {
  const std::vector<StrategyLoads> strategies = strategy_loads(result);
  const auto points_by_load = points_of(result);
  std::vector<Block> tables;
  const auto name = [](const Run& run) { return run.load.name; };
  for (const auto& [load, runs] : grouped(result.runs, name)) {
    const std::vector<Load>& points = points_by_load.at(load);
    if (is_sweep(result)) {
      tables.push_back(
          {.title = title_of(load, points, result), .table = sweep_table(result, load)});
      continue;
    }
    const auto fields_of = [&](const std::string& its_load) {
      if (its_load == "alone") return alone_fields(points);
      return its_load == "demand" ? demand_fields(points) : closed_fields(result);
    };
    std::vector<Row> rows;
    const std::map<std::string, int> places = tiers_under(result, load);
    for (const StrategyLoads& one : strategies) {
      if (one.runs_of(load).empty()) continue;
      rows.push_back(
          {&one, load, places.at(one.strategy), !successor(flaws, one.strategy).empty()});
    }
    auto fields = fields_of(load);
    fields.push_back({{"valid_runs", "", "runs", Unit::text, 2, Show::if_any}, valid_share});
    std::stable_partition(rows.begin(), rows.end(), [](const Row& row) { return !row.superseded; });
    tables.push_back(
        {.title = title_of(load, points, result), .table = shown(table_of(fields, rows))});
  }
  return tables;
}

std::vector<std::string> conclusions(const Result& result, const KnownFlaws& flaws) {
  const std::vector<StrategyLoads> all = strategy_loads(result);
  if (all.empty()) return {};
  std::vector<const StrategyLoads*> advisable, safe;
  for (const StrategyLoads& one : all) {
    if (!successor(flaws, one.strategy).empty()) continue;
    advisable.push_back(&one);
    if (one.is_safe()) safe.push_back(&one);
  }
  const bool contended =
      std::ranges::any_of(result.runs, [](const Run& run) { return run.load.clients > 1; });
  std::vector<std::string> said;
  if (is_sweep(result)) said = full_locks(result);
  if (contended) said.push_back(safe_sentence(safe, advisable));
  if (std::string counted = counted_sentence(all); !counted.empty()) {
    said.push_back(std::move(counted));
  }
  const auto costs = ranked(
      safe, [](const StrategyLoads& one) { return section_cost(one, one.points_of("alone") - 1); });
  if (!costs.empty()) {
    said.push_back(extremes("Cheapest over a network (acquire and release)", "dearest", costs,
                            tiers_under(result, "alone")));
  }
  const auto waits = ranked(safe, [](const StrategyLoads& one) {
    return median_figure(valid_of(one.runs_at("saturated", 0)), "fairness.longest_wait_seconds");
  });
  if (!waits.empty()) {
    said.push_back(extremes("Fairest (longest wait for a saturated lock)", "least fair", waits,
                            tiers_under(result, "saturated")));
  }
  const std::string candidate = !waits.empty()  ? waits.front().strategy
                                : !safe.empty() ? safe.front()->strategy
                                                : all.front().strategy;
  said.push_back(
      fmt::format("Next: lockbench hazards --strategies {0} shows which faults break it; "
                  "lockbench choose picks by what you require.",
                  candidate));
  return said;
}

}  // namespace lockbench::results
