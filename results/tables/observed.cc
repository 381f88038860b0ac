#include "results/tables/observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "results/tables/runs.h"

namespace lockbench::results {
namespace {

using FamilyFields = std::vector<Field<Observed>>;

constexpr double kNearlyAll = 0.95;

/// "≥12", "~12" for a family whose counts may be incomplete.
Cell seen(const Observed& family, std::uint64_t count, FamilyRow::Count kind) {
  if (count == 0 || kind == FamilyRow::plain) return count;
  const Tone tone = kind == FamilyRow::bounded ? Tone::plain : Tone::bad;
  const bool some_unseen = kind == FamilyRow::looked && family.owner_share < kNearlyAll;
  const bool exact = family.accuracy == "exact";
  if (exact && !some_unseen) return {count, tone};
  const bool at_least = exact || family.accuracy == "at_least";
  Cell cell(count, tone, (at_least ? "≥" : "~") + human_count(static_cast<double>(count)));
  cell.at_least = at_least;
  return cell;
}

template <class Number>
Cell seen(const Observed& /*family*/, const Number& number, FamilyRow::Count /*kind*/) {
  return number;
}

/// "~30 ms" if many holdings were not seen whole.
Cell percentile(const Observed& family, const Distribution& of, double Distribution::*figure) {
  Cell cell = figure_cell(of, figure);
  const bool doubtful = family.accuracy == "sampled" || family.hold_share < kNearlyAll;
  if (doubtful && of.any()) cell.text = "~" + human_seconds(of.*figure);
  return cell;
}
Cell percentile(const Observed& /*family*/, const std::optional<Distribution>& of,
                double Distribution::*figure) {
  return of ? figure_cell(*of, figure) : Cell();
}

/// A column for each number, and two for each distribution.
void add_fields(const FamilyRow& row, FamilyFields& fields) {
  const FamilyRow::Titled& given = row.column;
  Column column{.key = row.name,
                .group = given.group,
                .name = given.name,
                .unit = row.unit,
                .rank = given.rank,
                .show = given.show};
  const char* const suffix = row.unit == Unit::seconds ? "_seconds" : "";
  const auto add = [&](auto member) {
    if constexpr (requires(const Observed& family) {
                    percentile(family, family.*member, nullptr);
                  }) {
      for (const auto& [name, figure, later] :
           {std::tuple("p50", &Distribution::p50, 2), std::tuple("p99", &Distribution::p99, 0)}) {
        column.key = fmt::format("{}_{}{}", row.name, name, suffix);
        column.name = name;
        column.rank = given.rank + later;
        fields.push_back({column, [member, figure = figure](const Observed& family) {
                            return percentile(family, family.*member, figure);
                          }});
      }
    } else {
      column.key += suffix;
      if (column.name.empty()) {
        column.name = row.name;
        column.show = Show::if_asked;
      }
      fields.push_back({column, [member, kind = given.count](const Observed& family) -> Cell {
                          return seen(family, family.*member, kind);
                        }});
    }
  };
  std::visit(add, row.member);
}

FamilyFields family_fields() {
  FamilyFields fields{
      {{"store", "", "store"}, &Observed::store},
      {{"endpoint", "", "server", Unit::text, 9, Show::if_asked}, &Observed::endpoint},
      {{"family", "", "family"}, &Observed::family},
      {{"source", "", "source", Unit::text, 0, Show::if_asked}, &Observed::source},
      {{"accuracy", "", "accuracy", Unit::text, 9}, &Observed::accuracy}};
  for (const FamilyRow& row : kFamilyRows) add_fields(row, fields);
  return fields;
}

/// A number with this tone, unless it is 0.
template <class Row, class Number>
auto toned(Number Row::*member, Tone tone) {
  return [=](const Row& row) { return Cell(row.*member, row.*member > 0 ? tone : Tone::plain); };
}

const std::vector<Field<ObservedLock>> lock_fields{
    {{"lock", "", "lock"}, &ObservedLock::lock},
    {{"store", "", "store", Unit::text, 8}, &ObservedLock::store},
    {{"endpoint", "", "server", Unit::text, 9}, &ObservedLock::endpoint},
    {{"family", "", "family", Unit::text, 7}, &ObservedLock::family},
    {{"shape", "", "shape", Unit::text, 10}, &ObservedLock::shape},
    {{"trouble", "", "trouble", Unit::text, 1, Show::if_any},
     [](const ObservedLock& lock) { return Cell(lock.trouble, Tone::bad); }},
    {{"holder", "", "holder", Unit::text, 4},
     [](const ObservedLock& lock) { return Cell(lock.holder.value_or("free")); }},
    {{"held_seconds", "held", "for", Unit::seconds, 1}, &ObservedLock::held_seconds},
    {{"ttl_left_seconds", "TTL", "left", Unit::seconds, 2}, &ObservedLock::ttl_left_seconds},
    {{"waiting_now", "waiting", "now", Unit::count, 2}, &ObservedLock::waiting_now},
    {{"most_waiting", "most", "waiting", Unit::count, 6}, &ObservedLock::most_waiting},
    {{"acquisitions", "", "acquired", Unit::count, 3}, &ObservedLock::acquisitions},
    {{"expired_while_held", "", "expired", Unit::count, 3},
     toned(&ObservedLock::expired_while_held, Tone::bad)},
};

const std::vector<Field<ObservedSource>> source_fields{
    {{"endpoint", "", "server"}, &ObservedSource::endpoint},
    {{"store", "", "store"}, &ObservedSource::store},
    {{"way", "", "by"}, &ObservedSource::way},
    {{"accuracy", "", "accuracy"}, &ObservedSource::accuracy},
    {{"waiters", "waiters", "by"},
     [](const ObservedSource& source) {
       return Cell(source.waiters.empty() ? "not seen" : source.waiters);
     }},
    {{"watched_seconds", "", "watched", Unit::seconds}, &ObservedSource::watched_seconds},
    {{"blind_seconds", "", "blind", Unit::seconds},
     toned(&ObservedSource::blind_seconds, Tone::doubtful)},
    {{"no_locks", "no", "locks", Unit::count, 0, Show::if_any}, &ObservedSource::no_locks},
    {{"missed", "changes", "missed", Unit::count}, toned(&ObservedSource::missed, Tone::doubtful)},
    {{"commands", "commands", "sent", Unit::count}, &ObservedSource::commands},
};

}  // namespace

Table observed_table(const Result& result) {
  const std::vector<Observed>& families = result.observed.value();
  FamilyFields fields = family_fields();
  const auto elsewhere = [&](const Observed& one) {
    return one.endpoint != families.front().endpoint;
  };
  if (std::ranges::any_of(families, elsewhere)) {
    const auto server = std::ranges::find(
        fields, "endpoint", [](const Field<Observed>& field) { return field.column.key; });
    server->column.show = Show::always;
  }
  return table_of(fields, families);
}

Table lock_table(const std::vector<ObservedLock>& locks) { return table_of(lock_fields, locks); }

Table source_table(const std::vector<ObservedSource>& sources) {
  return table_of(source_fields, sources);
}

std::string sentence_of(const ObservedFinding& finding) {
  std::string line = fmt::format("{}: {}", finding.kind, finding.store);
  if (!finding.family.empty()) line += " " + finding.family;
  if (finding.lock && *finding.lock != finding.family) line += fmt::format(" ({})", *finding.lock);
  line += ": " + finding.evidence;
  if (!finding.over) return line;
  return line + fmt::format(" [over: last seen {} after the watch began]",
                            human_seconds(finding.last_seconds));
}

Tone tone_of(const ObservedFinding& finding) {
  constexpr std::array<std::string_view, 5> kMild{"thin_margin", "hog", "blind", "missed",
                                                  "never_released"};
  const bool mild = finding.over || std::ranges::find(kMild, finding.kind) != kMild.end();
  return mild ? Tone::doubtful : Tone::bad;
}

}  // namespace lockbench::results
