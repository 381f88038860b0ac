#include "hazards/repeat.h"

#include <fmt/format.h>

namespace lockbench::hazards {
namespace {

/// Whether `cell` is more informative than the play shown so far.
bool is_more_informative(const Cell& cell, const Cell& shown) {
  if (!shown.played()) return cell.played() || (cell.failed && !shown.failed);
  if (shown.disturbed) return cell.played() && !cell.disturbed;
  return cell.played() && !cell.agrees() && shown.agrees();
}

}  // namespace

bool Repeated::unstable() const {
  return outcomes.size() > 1U + outcomes.count(HazardOutcome::not_played);
}

std::string Repeated::tally() const {
  std::string text;
  for (const auto& [outcome, seen] : outcomes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(outcome),
                        seen == 1 ? "once" : fmt::format("{} times", seen));
  }
  return text;
}

std::vector<Cell> repeated(const std::vector<Cell>& cells, int times) {
  std::vector<Cell> plays;
  plays.reserve(cells.size() * static_cast<std::size_t>(times));
  for (int round = 0; round < times; ++round) {
    plays.insert(plays.end(), cells.begin(), cells.end());
  }
  return plays;
}

std::vector<Repeated> gather(const std::vector<Cell>& plays, std::size_t cells) {
  std::vector<Repeated> all;
  all.reserve(cells);
  std::size_t place = 0;
  for (const Cell& play : plays) {
    if (all.size() < cells) all.push_back({.shown = play});
    Repeated& cell = all.at(place);
    place = place + 1 < cells ? place + 1 : 0;
    if (is_more_informative(play, cell.shown)) cell.shown = play;
    if (play.played()) ++cell.outcomes[*play.observed];
    if (play.failed) cell.failures.push_back(play.reason);
  }
  return all;
}

}  // namespace lockbench::hazards
