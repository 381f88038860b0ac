#include "results/tables/observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "results/tables/experiments.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

using FamilyFields = std::vector<Field<Observed>>;

/// The count of a family that was not seen in full: "≥12", "~12".
Cell seen_count(const Observed& family, std::uint64_t count, bool bad) {
  if (count == 0) return count;
  const Tone tone = bad ? Tone::bad : Tone::plain;
  if (family.accuracy == "exact") return {count, tone};
  const bool at_least = family.accuracy == "at_least";
  Cell cell(count, tone, (at_least ? "≥" : "~") + human_count(static_cast<double>(count)));
  cell.at_least = at_least;
  return cell;
}

/// Adds the columns of one row, by what its member is.
class Columns {
 public:
  Columns(const FamilyRow& row, FamilyFields& into) : row_(row), into_(into) {}

  void operator()(std::uint64_t Observed::*count) const {
    using Count = FamilyRow::Count;
    if (row_.column.count == Count::plain) return add(count);
    const bool bad = row_.column.count == Count::bad;
    add([=](const Observed& family) { return seen_count(family, family.*count, bad); });
  }
  template <class Number>
  void operator()(Number Observed::*number) const {
    add(number);
  }
  void operator()(Distribution Observed::*distribution) const {
    add_percentiles([=](const Observed& family) { return &(family.*distribution); });
  }
  void operator()(std::optional<Distribution> Observed::*distribution) const {
    add_percentiles([=](const Observed& family) {
      return family.*distribution ? &*(family.*distribution) : nullptr;
    });
  }

 private:
  void add(std::function<Cell(const Observed&)> cell) const {
    const FamilyRow::Titled& given = row_.column;
    const bool titled = *given.name != '\0';
    into_.push_back({{.key = key(""),
                      .group = given.group,
                      .name = titled ? given.name : row_.name,
                      .unit = row_.unit,
                      .rank = given.rank,
                      .show = titled ? given.show : Show::if_asked},
                     std::move(cell)});
  }
  template <class Find>
  void add_percentiles(Find find) const {
    const FamilyRow::Titled& given = row_.column;
    const auto add = [&](const char* name, double Distribution::*figure, int rank) {
      into_.push_back({{.key = key(std::string("_") + name),
                        .group = given.group,
                        .name = name,
                        .unit = row_.unit,
                        .rank = rank,
                        .show = given.show},
                       [=](const Observed& family) {
                         const Distribution* const of = find(family);
                         return of == nullptr ? Cell() : figure_cell(*of, figure);
                       }});
    };
    add("p50", &Distribution::p50, given.rank + 2);
    add("p99", &Distribution::p99, given.rank);
  }
  std::string key(const std::string& part) const {
    return row_.name + part + (row_.unit == Unit::seconds ? "_seconds" : "");
  }

  const FamilyRow& row_;
  FamilyFields& into_;
};

FamilyFields family_fields() {
  FamilyFields fields{{{"store", "", "store"}, &Observed::store},
                      {{"family", "", "family"}, &Observed::family},
                      {{"source", "", "source", Unit::text, 0, Show::if_asked}, &Observed::source},
                      {{"accuracy", "", "accuracy", Unit::text, 9}, &Observed::accuracy}};
  for (const FamilyRow& row : kFamilyRows) std::visit(Columns(row, fields), row.member);
  return fields;
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
     [](const ObservedLock& lock) {
       return Cell(lock.expired_while_held, lock.expired_while_held > 0 ? Tone::bad : Tone::plain);
     }},
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
     [](const ObservedSource& source) {
       return Cell(source.blind_seconds, source.blind_seconds > 0 ? Tone::doubtful : Tone::plain);
     }},
    {{"missed", "changes", "missed", Unit::count},
     [](const ObservedSource& source) {
       return Cell(source.missed, source.missed > 0 ? Tone::doubtful : Tone::plain);
     }},
    {{"commands", "commands", "sent", Unit::count}, &ObservedSource::commands},
};

}  // namespace

Table observed_table(const Result& result) {
  return table_of(family_fields(), result.observed.value());
}

Table lock_table(const std::vector<ObservedLock>& locks) { return table_of(lock_fields, locks); }

Table source_table(const std::vector<ObservedSource>& sources) {
  return table_of(source_fields, sources);
}

std::string sentence_of(const ObservedFinding& finding) {
  std::string line = fmt::format("{}: {}", finding.kind, finding.store);
  if (!finding.family.empty()) line += " " + finding.family;
  return line + ": " + finding.evidence;
}

Tone tone_of(const ObservedFinding& finding) {
  constexpr std::array<std::string_view, 3> kMild{"thin_margin", "hog", "blind"};
  const bool mild = std::find(kMild.begin(), kMild.end(), finding.kind) != kMild.end();
  return mild ? Tone::doubtful : Tone::bad;
}

}  // namespace lockbench::results
