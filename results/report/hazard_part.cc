#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "results/file/option_values.h"
#include "results/report/limits.h"
#include "results/report/parts.h"
#include "results/tables/outcomes.h"

namespace lockbench::results::report {
namespace {

std::size_t index_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

/// Bounds the size of a page, however long the timelines are.
class TimelineBudget {
 public:
  bool takes(const Hazard& hazard) {
    std::size_t bytes = 0;
    for (const HazardEvent& event : hazard.timeline) bytes += event.who.size() + event.what.size();
    for (const auto& [name, value] : hazard.evidence) {
      bytes += name.size() + value_text(value).size();
    }
    if (used_ + bytes > kMostPlayBytes) return false;
    used_ += bytes;
    return true;
  }

 private:
  std::size_t used_ = 0;
};

void add_timeline(const Hazard& hazard, HazardMatrix::Play& play) {
  for (const auto& [name, value] : hazard.evidence) {
    if (name == "reason") {
      play.reason = value_text(value);
    } else {
      play.evidence.emplace_back(name, value_text(value));
    }
  }
  const auto events = std::min(hazard.timeline.size(), kMostEvents);
  play.timeline.assign(hazard.timeline.begin(),
                       hazard.timeline.begin() + static_cast<std::ptrdiff_t>(events));
  if (events < hazard.timeline.size()) {
    play.timeline.push_back({hazard.timeline.back().t, "…",
                             fmt::format("{} more, in the file", hazard.timeline.size() - events)});
  }
}

Remarks legend_of(const std::set<std::string>& outcomes, bool surprises, bool unstable) {
  Remarks legend;
  for (const OutcomeWord& word : outcome_words()) {
    if (!outcomes.contains(std::string(word.outcome))) continue;
    legend.push_back({word.tone, word.shown == word.mark
                                     ? std::string(word.meaning)
                                     : fmt::format("{}: {}", word.shown, word.meaning)});
  }
  if (surprises) legend.push_back({Tone::doubtful, "!: differs from what the strategy declares"});
  if (unstable) legend.push_back({Tone::doubtful, "~: plays ended differently"});
  return legend;
}

}  // namespace

void add_hazard_section(const Result& result, Part& part) {
  if (!result.hazards || result.hazards->empty()) return;
  HazardMatrix matrix;
  TimelineBudget budget;
  std::set<std::string> outcomes;
  bool surprises = false, unstable = false;
  std::size_t without_timeline = 0;
  for (const Hazard& hazard : *result.hazards) {
    const OutcomeWord* const word = find_outcome(hazard.observed);
    HazardMatrix::Play play{.scenario = index_of(matrix.scenarios, hazard.scenario),
                            .strategy = index_of(matrix.strategies, hazard.strategy),
                            .word = std::string(word == nullptr ? "?" : word->shown),
                            .tone = tone_of(word),
                            .outcome = hazard.observed};
    play.word += outcome_suffix(hazard);
    if (!hazard.agrees) play.outcome += fmt::format(", but {} is declared", hazard.expected);
    if (budget.takes(hazard)) {
      add_timeline(hazard, play);
    } else {
      ++without_timeline;
    }
    outcomes.insert(hazard.observed);
    surprises = surprises || !hazard.agrees;
    unstable = unstable || is_unstable(hazard);
    matrix.plays.push_back(std::move(play));
  }
  matrix.legend = legend_of(outcomes, surprises, unstable);
  Section section{.title = "What breaks which lock",
                  .intro =
                      "Each cell is a fault that was injected into real servers. Select one to "
                      "see what happened."};
  if (without_timeline > 0) {
    section.blocks.emplace_back(Remarks{
        {Tone::doubtful, fmt::format("{} plays are shown without their timeline to limit the page; "
                                     "the result file has all of them",
                                     without_timeline)}});
  }
  section.blocks.emplace_back(std::move(matrix));
  part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
