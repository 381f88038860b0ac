#include "results/tables/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace lockbench::results {
namespace {

const Run& first(const Row& row) { return *row.runs.front(); }

bool all_valid(const Row& row) {
  return std::all_of(row.runs.begin(), row.runs.end(),
                     [](const Run* run) { return run->generator.valid; });
}

/// What a repetition proved outweighs what another one does not know.
int gravity(Verdict verdict) {
  switch (verdict) {
    case Verdict::exclusive:
      return 0;
    case Verdict::unaudited:
      return 1;
    case Verdict::unprotected:
      return 2;
    case Verdict::violated:
      return 3;
  }
  return 0;
}

/// The worst of the repetitions.
Verdict verdict(const Row& row) {
  Verdict worst = Verdict::exclusive;
  for (const Run* run : row.runs) {
    if (gravity(run->audit.verdict) > gravity(worst)) {
      worst = run->audit.verdict;
    }
  }
  return worst;
}

std::string strategy_text(const Row& row) { return first(row).strategy; }
std::string backend_text(const Row& row) { return first(row).backend; }
std::string verdict_text(const Row& row) { return std::string(to_string(verdict(row))); }
std::string valid_text(const Row& row) { return all_valid(row) ? "true" : "false"; }
std::string mark_text(const Row& row) { return all_valid(row) ? "" : "invalid"; }
Tone verdict_tone(const Row& row) {
  const Verdict worst = verdict(row);
  if (worst == Verdict::exclusive) return Tone::good;
  return worst == Verdict::violated ? Tone::bad : Tone::doubtful;
}
Tone mark_tone(const Row& /*row*/) { return Tone::doubtful; }
std::string flaw_text(const Row& row) { return row.flaw; }
std::string reasons_text(const Row& row) {
  return fmt::format("{}", fmt::join(first(row).generator.reasons, "; "));
}

constexpr Column file_text(std::string_view header, std::string (*text)(const Row&)) {
  return {.header = header, .show = Show::file_only, .text = text};
}

constexpr Column file_figure(std::string_view header, std::string_view figure, Unit unit) {
  return {.header = header, .figure = figure, .unit = unit, .show = Show::file_only};
}

constexpr Column latency(std::string_view group, std::string_view name, std::string_view header,
                         std::string_view figure, int rank) {
  return {.group = group,
          .name = name,
          .header = header,
          .figure = figure,
          .unit = Unit::seconds,
          .show = Show::where_any,
          .rank = rank};
}

constexpr Column ratio(std::string_view group, std::string_view name, std::string_view header,
                       std::string_view figure, int rank) {
  return {.group = group,
          .name = name,
          .header = header,
          .figure = figure,
          .unit = Unit::number,
          .rank = rank};
}

constexpr Column not_granted(std::string_view name, std::string_view header,
                             std::string_view figure, int rank) {
  return {.name = name,
          .header = header,
          .figure = figure,
          .unit = Unit::count,
          .merge = Merge::sum,
          .show = Show::where_any,
          .rank = rank};
}

constexpr Column alarm(std::string_view group, std::string_view name, std::string_view header,
                       std::string_view figure, int rank, std::string_view figure_max = {}) {
  return {.group = group,
          .name = name,
          .header = header,
          .figure = figure,
          .unit = Unit::count,
          .merge = Merge::sum,
          .rank = rank,
          .figure_max = figure_max,
          .alarming = true};
}

/// No harm in itself.
constexpr Column counted(std::string_view group, std::string_view name, std::string_view header,
                         std::string_view figure, int rank) {
  return {.group = group,
          .name = name,
          .header = header,
          .figure = figure,
          .unit = Unit::count,
          .merge = Merge::sum,
          .show = Show::where_any,
          .rank = rank};
}

constexpr Column wakes() {
  return {.group = "woken/",
          .name = "grant",
          .header = "herd_factor",
          .figure = "herd_factor",
          .unit = Unit::number,
          .show = Show::where_any,
          .rank = 23};
}

constexpr Column merged_as(Column column, Merge merge) {
  column.merge = merge;
  return column;
}

constexpr Column with_spread(Column column) {
  column.with_spread = true;
  return column;
}

constexpr Column audited(Column column) {
  column.needs_audit = true;
  return column;
}

// For lack of room, what seldom happens goes first, and a note keeps its counts; then what explains
// a lock's figures; the figures that people compare go last.
constexpr std::array kColumns{
    Column{.name = "strategy", .header = "strategy", .text = strategy_text},
    file_text("backend", backend_text),
    file_figure("repetition", "repetition", Unit::count),
    file_figure("duration_seconds", "duration_seconds", Unit::seconds),
    file_figure("sections", "sections", Unit::count),
    with_spread(ratio("sections", "/s", "sections_per_second", "sections_per_second", 1)),
    latency("acquire", "p50", "acquire_p50_seconds", "acquire.p50", 2),
    latency("acquire", "p99", "acquire_p99_seconds", "acquire.p99", 3),
    merged_as(latency("acquire", "max", "acquire_max_seconds", "acquire.max", 6), Merge::max),
    latency("handoff", "p50", "handoff_p50_seconds", "handoff.p50", 7),
    ratio("cmds/", "sect.", "commands_per_section", "commands_per_section", 8),
    audited(ratio("fair-", "ness", "fairness_jain", "fairness.jain", 9)),
    latency("wait:", "trips", "wait_round_trip_seconds", "wait.round_trip_seconds", 17),
    latency("wait:", "backoff", "wait_backoff_seconds", "wait.backoff_seconds", 18),
    latency("wait:", "notified", "wait_notified_seconds", "wait.notified_seconds", 19),
    wakes(),
    file_figure("acquired", "outcomes.acquired", Unit::count),
    not_granted("timed out", "timed_out", "outcomes.timed_out", 14),
    not_granted("refused", "refused", "outcomes.refused", 15),
    not_granted("failed", "failed", "outcomes.failed", 12),
    not_granted("unknown", "unknown", "outcomes.unknown", 13),
    file_figure("abandoned", "outcomes.abandoned", Unit::count),
    audited(alarm("lost", "updates", "lost_updates", "audit.lost_updates", 4,
                  "audit.lost_updates_max")),
    audited(file_figure("lost_updates_max", "audit.lost_updates_max", Unit::count)),
    alarm("", "overlaps", "overlaps", "audit.overlaps", 16),
    counted("stale", "rejected", "stale_writes_rejected", "audit.stale_writes_rejected", 20),
    counted("leases", "lost", "leases_lost", "leases_lost", 21),
    counted("", "renewals", "renewals", "renewal.renewals", 22),
    Column{.group = "rounds/",
           .name = "grant",
           .header = "rounds_per_grant",
           .figure = "quorum.rounds_per_grant",
           .unit = Unit::number,
           .show = Show::where_any,
           .rank = 24},
    counted("split", "votes", "split_votes", "quorum.split_votes", 25),
    latency("validity", "p50", "validity_p50_seconds", "quorum.validity.p50", 26),
    latency("replica", "wait p50", "replica_wait_p50_seconds", "replication.wait.p50", 27),
    latency("replica", "wait p99", "replica_wait_p99_seconds", "replication.wait.p99", 28),
    Column{.name = "verdict",
           .header = "verdict",
           .rank = 5,
           .text = verdict_text,
           .tone = verdict_tone},
    file_text("valid", valid_text),
    Column{
        .name = "run", .show = Show::where_any, .rank = 11, .text = mark_text, .tone = mark_tone},
    file_text("invalid_because", reasons_text),
    Column{.name = "falls to", .show = Show::where_any, .rank = 10, .text = flaw_text},
};

}  // namespace

std::span<const Column> all_columns() { return kColumns; }

}  // namespace lockbench::results
