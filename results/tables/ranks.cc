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

template <class T>
auto of_rank(T Rank::*member) {
  return [member](const RankRow& row) -> Cell { return row.rank->*member; };
}

const std::vector<Field<RankRow>> rank_fields{
    {{"run", "", "run", Unit::text, 3}, &RankRow::run},
    {{"rank", "", "rank", Unit::count}, of_rank(&Rank::rank)},
    {{"host", "", "host"}, of_rank(&Rank::host)},
    {{"clients", "", "clients", Unit::count, 5}, of_rank(&Rank::clients)},
    {{"share", "share of", "sections", Unit::share, 2}, of_rank(&Rank::share)},
    {{"acquire_p50_seconds", "acquire", "p50", Unit::seconds, 1}, of_rank(&Rank::acquire_p50)},
    {{"acquire_p99_seconds", "acquire", "p99", Unit::seconds, 1}, of_rank(&Rank::acquire_p99)},
    {{"cpu_share", "host's", "CPU", Unit::share, 3}, of_rank(&Rank::cpu_share)},
    {{"lag_p99_seconds", "lag", "p99", Unit::seconds, 4, Show::if_any},
     of_rank(&Rank::lag_p99_seconds)},
    {{"late_seconds", "began", "late by", Unit::seconds, 6, Show::if_asked},
     of_rank(&Rank::late_seconds)},
    {{"remark", "", "", Unit::text, 0, Show::if_any}, remark},
};

}  // namespace

Table rank_table(const Result& result) {
  std::vector<RankRow> rows;
  for (const Run& run : result.runs) {
    for (const Rank& rank : run.ranks) rows.push_back({name_of(run, result), &rank});
  }
  return table_of(rank_fields, rows);
}

}  // namespace lockbench::results
