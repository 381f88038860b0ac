#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/qualify.h"

namespace lockbench::choose {

/// What qualifying strategies are ranked by.
struct RankingFigure {
  std::string figure;  ///< path of a run's number; empty: no figure decides
  std::string why;
  bool higher_is_better = false;
};

RankingFigure ranking_figure_of(const Requirements& requirements);

struct Ranked {
  const Candidate* candidate = nullptr;
  std::optional<double> value{};   ///< median of the valid repetitions; nothing: not measured
  bool at_least = false;           ///< clients still waited when the runs ended
  bool only_invalid_runs = false;  ///< then it is not ranked with strategies that have valid ones
  /// Strategies of one tier cannot be told apart by the figure; 1 is the best, 0: not measured.
  int tier = 0;
  int servers = 1;                          ///< that it needs
  std::optional<double> commands{};         ///< per section
  std::vector<std::string_view> hazards{};  ///< plays that harm it
  bool blocks_successors = false;           ///< of a frozen leader, or of a long job that crashed
  std::string drawback{};                   ///< why it comes after those for which this is empty
};

/// Whether nobody can take over while a holder is frozen.
bool blocks_takeover(const Descriptor& strategy, const Evidence& evidence);

/// The strategies that qualify, best first. Without a drawback first: practice has not superseded
/// it, plays of the faults apply to it, a known library implements it, and it blocks no successors.
/// Then by tier; within a tier, what is more than twice as bad as its best comes last; then by
/// servers, commands and the number of hazards; then by the figure and by name.
std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const RankingFigure& ranked_by,
                         const Requirements& requirements, const Evidence& evidence,
                         const Evidence::Basis& basis);

}  // namespace lockbench::choose
