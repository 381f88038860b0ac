#include "results/tables/observed.h"

#include <fmt/format.h>

#include "results/tables/units.h"

namespace lockbench::results {
namespace {

/// The count of a family that was not seen in full: "≥12", "~12".
Cell seen_count(const Observed& family, std::uint64_t count) {
  if (family.accuracy == "exact" || count == 0) return count;
  const char* const sign = family.accuracy == "at_least" ? "≥" : "~";
  Cell cell(count, Tone::plain, sign + human_count(static_cast<double>(count)));
  cell.at_least = family.accuracy == "at_least";
  return cell;
}

/// The same of what should not happen.
Cell seen_evil(const Observed& family, std::uint64_t count) {
  Cell cell = seen_count(family, count);
  if (count > 0) cell.tone = Tone::bad;
  return cell;
}

using FamilyField = Field<Observed>;

std::optional<double> figure_of(const Distribution& distribution, double value) {
  return distribution.count > 0 ? std::optional(value) : std::nullopt;
}

std::vector<FamilyField> family_counts() {
  return {
      {{.key = "store", .name = "store"}, &Observed::store},
      {{.key = "family", .name = "family"}, &Observed::family},
      {{.key = "source", .name = "source", .show = Show::if_asked}, &Observed::source},
      {{.key = "accuracy", .name = "accuracy", .rank = 9}, &Observed::accuracy},
      {{.key = "locks", .name = "locks", .unit = Unit::count, .rank = 8}, &Observed::locks},
      {{.key = "acquisitions", .name = "acquired", .unit = Unit::count, .rank = 1},
       [](const Observed& family) { return seen_count(family, family.acquisitions); }},
      {{.key = "releases", .name = "released", .unit = Unit::count, .rank = 7},
       [](const Observed& family) { return seen_count(family, family.releases); }},
      {{.key = "renewals", .name = "renewed", .unit = Unit::count, .rank = 8, .show = Show::if_any},
       [](const Observed& family) { return seen_count(family, family.renewals); }},
      {{.key = "expired_while_held", .name = "expired", .unit = Unit::count, .rank = 1},
       [](const Observed& family) { return seen_evil(family, family.expired_while_held); }},
      {{.key = "undecided",
        .name = "undecided",
        .unit = Unit::count,
        .rank = 6,
        .show = Show::if_any},
       [](const Observed& family) { return seen_count(family, family.undecided); }},
      {{.key = "taken_over", .group = "taken", .name = "over", .unit = Unit::count, .rank = 2},
       [](const Observed& family) { return seen_evil(family, family.taken_over); }},
      {{.key = "owner_changed",
        .group = "owner",
        .name = "changed",
        .unit = Unit::count,
        .rank = 3,
        .show = Show::if_any},
       [](const Observed& family) { return seen_evil(family, family.owner_changed); }},
      {{.key = "session_lost",
        .group = "session",
        .name = "lost",
        .unit = Unit::count,
        .rank = 4,
        .show = Show::if_any},
       [](const Observed& family) { return seen_evil(family, family.session_lost); }},
      {{.key = "no_ttl",
        .group = "without",
        .name = "TTL",
        .unit = Unit::count,
        .rank = 3,
        .show = Show::if_any},
       [](const Observed& family) { return seen_evil(family, family.no_ttl); }},
      {{.key = "held_now", .group = "held", .name = "now", .unit = Unit::count, .rank = 2},
       &Observed::held_now},
      {{.key = "waiting_now", .group = "waiting", .name = "now", .unit = Unit::count, .rank = 3},
       &Observed::waiting_now},
  };
}

std::vector<FamilyField> family_times() {
  return {
      {{.key = "hold_p50_seconds",
        .group = "hold",
        .name = "p50",
        .unit = Unit::seconds,
        .rank = 4},
       [](const Observed& family) { return figure_of(family.hold, family.hold.p50); }},
      {{.key = "hold_p99_seconds",
        .group = "hold",
        .name = "p99",
        .unit = Unit::seconds,
        .rank = 2},
       [](const Observed& family) { return figure_of(family.hold, family.hold.p99); }},
      {{.key = "wait_p99_seconds",
        .group = "wait",
        .name = "p99",
        .unit = Unit::seconds,
        .rank = 5,
        .show = Show::if_any},
       [](const Observed& family) {
         return family.wait ? figure_of(*family.wait, family.wait->p99) : std::nullopt;
       }},
      {{.key = "margin_min_seconds",
        .group = "smallest",
        .name = "margin",
        .unit = Unit::seconds,
        .rank = 5},
       &Observed::margin_min},
      {{.key = "missed", .name = "missed", .unit = Unit::count, .rank = 6, .show = Show::if_any},
       &Observed::missed},
  };
}

const std::vector<FamilyField>& family_fields() {
  static const std::vector<FamilyField> fields = [] {
    std::vector<FamilyField> all = family_counts();
    for (const FamilyField& field : family_times()) all.push_back(field);
    return all;
  }();
  return fields;
}

}  // namespace

Table observed_table(const Result& result) {
  return table_of(family_fields(), result.observed.value());
}

std::vector<std::string> observed_lines(const Result& result) {
  std::vector<std::string> lines;
  for (const ObservedFinding& finding : result.findings) {
    std::string line = fmt::format("{}: {}", finding.kind, finding.store);
    if (!finding.family.empty()) line += " " + finding.family;
    line += ": " + finding.evidence;
    if (!finding.advice.empty()) line += ": " + finding.advice;
    lines.push_back(line);
  }
  for (const ObservedSource& source : result.sources) {
    for (const std::string& unseen : source.unseen) {
      lines.push_back(fmt::format("{} {}: cannot see {}", source.store, source.endpoint, unseen));
    }
  }
  return lines;
}

}  // namespace lockbench::results
