#include "results/tables/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "results/file/loads.h"

namespace lockbench::results {
namespace {

struct RankRow {
  std::string run;
  const Rank* rank;
};

/// What is to be said of a rank.
Cell remark(const RankRow& row) {
  std::vector<std::string> words;
  if (row.rank->lost) words.emplace_back("lost");
  if (row.rank->outlier) words.emplace_back("outlier");
  if (!row.rank->notes.empty() && !row.rank->lost) words.emplace_back("see below");
  return {fmt::format("{}", fmt::join(words, ", ")), words.empty() ? Tone::plain : Tone::doubtful};
}

template <auto Member>
Field<RankRow> rank_field(Column column) {
  return {std::move(column), [](const RankRow& row) { return Cell(row.rank->*Member); }};
}

}  // namespace

Table rank_table(const Result& result) {
  std::vector<RankRow> rows;
  for (const Run& run : result.runs) {
    for (const Rank& rank : run.ranks) rows.push_back({name_of(run, result), &rank});
  }
  return table_of<RankRow>(
      {{{.key = "run", .name = "run", .rank = 3}, [](const RankRow& row) { return Cell(row.run); }},
       rank_field<&Rank::rank>({.key = "rank", .name = "rank", .unit = Unit::count}),
       rank_field<&Rank::host>({.key = "host", .name = "host"}),
       rank_field<&Rank::clients>(
           {.key = "clients", .name = "clients", .unit = Unit::count, .rank = 5}),
       rank_field<&Rank::share>({.key = "share",
                                 .group = "share of",
                                 .name = "sections",
                                 .unit = Unit::share,
                                 .rank = 2}),
       rank_field<&Rank::acquire_p50>({.key = "acquire_p50_seconds",
                                       .group = "acquire",
                                       .name = "p50",
                                       .unit = Unit::seconds,
                                       .rank = 1}),
       rank_field<&Rank::acquire_p99>({.key = "acquire_p99_seconds",
                                       .group = "acquire",
                                       .name = "p99",
                                       .unit = Unit::seconds,
                                       .rank = 1}),
       rank_field<&Rank::rtt_seconds>({.key = "rtt_seconds",
                                       .group = "added",
                                       .name = "rtt",
                                       .unit = Unit::seconds,
                                       .rank = 4,
                                       .show = Show::if_any}),
       rank_field<&Rank::cpu_share>(
           {.key = "cpu_share", .group = "host's", .name = "CPU", .unit = Unit::share, .rank = 3}),
       rank_field<&Rank::lag_p99_seconds>({.key = "lag_p99_seconds",
                                           .group = "lag",
                                           .name = "p99",
                                           .unit = Unit::seconds,
                                           .rank = 4,
                                           .show = Show::if_any}),
       rank_field<&Rank::clock_offset_seconds>({.key = "clock_offset_seconds",
                                                .group = "clock",
                                                .name = "offset",
                                                .unit = Unit::seconds,
                                                .rank = 6,
                                                .show = Show::if_asked}),
       rank_field<&Rank::clock_bound_seconds>({.key = "clock_bound_seconds",
                                               .group = "clock",
                                               .name = "±",
                                               .unit = Unit::seconds,
                                               .rank = 2}),
       {{.key = "remark", .name = "", .rank = 0, .show = Show::if_any}, remark}},
      rows);
}

}  // namespace lockbench::results
