#include "results/tables/observed.h"

#include <fmt/format.h>

#include "results/tables/experiments.h"
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

auto of_count(std::uint64_t Observed::*count) {
  return [count](const Observed& family) { return seen_count(family, family.*count); };
}

/// The same of what should not happen.
auto of_bad_count(std::uint64_t Observed::*count) {
  return [count](const Observed& family) {
    Cell cell = seen_count(family, family.*count);
    if (family.*count > 0) cell.tone = Tone::bad;
    return cell;
  };
}

const std::vector<Field<Observed>> family_fields{
    {{"store", "", "store"}, &Observed::store},
    {{"family", "", "family"}, &Observed::family},
    {{"source", "", "source", Unit::text, 0, Show::if_asked}, &Observed::source},
    {{"accuracy", "", "accuracy", Unit::text, 9}, &Observed::accuracy},
    {{"locks", "", "locks", Unit::count, 8}, &Observed::locks},
    {{"acquisitions", "", "acquired", Unit::count, 1}, of_count(&Observed::acquisitions)},
    {{"releases", "", "released", Unit::count, 7}, of_count(&Observed::releases)},
    {{"renewals", "", "renewed", Unit::count, 8, Show::if_any}, of_count(&Observed::renewals)},
    {{"expired_while_held", "", "expired", Unit::count, 1},
     of_bad_count(&Observed::expired_while_held)},
    {{"undecided", "", "undecided", Unit::count, 6, Show::if_any}, of_count(&Observed::undecided)},
    {{"taken_over", "taken", "over", Unit::count, 2}, of_bad_count(&Observed::taken_over)},
    {{"owner_changed", "owner", "changed", Unit::count, 3, Show::if_any},
     of_bad_count(&Observed::owner_changed)},
    {{"session_lost", "session", "lost", Unit::count, 4, Show::if_any},
     of_bad_count(&Observed::session_lost)},
    {{"no_ttl", "without", "TTL", Unit::count, 3, Show::if_any}, of_bad_count(&Observed::no_ttl)},
    {{"held_now", "held", "now", Unit::count, 2}, &Observed::held_now},
    {{"waiting_now", "waiting", "now", Unit::count, 3}, &Observed::waiting_now},
    {{"hold_p50_seconds", "hold", "p50", Unit::seconds, 4},
     of(&Observed::hold, &Distribution::p50)},
    {{"hold_p99_seconds", "hold", "p99", Unit::seconds, 2},
     of(&Observed::hold, &Distribution::p99)},
    {{"wait_p99_seconds", "wait", "p99", Unit::seconds, 5, Show::if_any},
     [](const Observed& family) {
       return family.wait ? figure_cell(*family.wait, &Distribution::p99) : Cell();
     }},
    {{"margin_min_seconds", "smallest", "margin", Unit::seconds, 5}, &Observed::margin_min},
    {{"missed", "", "missed", Unit::count, 6, Show::if_any}, &Observed::missed},
};

}  // namespace

Table observed_table(const Result& result) {
  return table_of(family_fields, result.observed.value());
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
