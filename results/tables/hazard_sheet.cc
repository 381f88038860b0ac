#include "results/tables/hazard_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "results/tables/csv.h"
#include "results/tables/hazard_words.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kGreen = "\x1b[32m", kRed = "\x1b[31m", kYellow = "\x1b[33m",
                           kDim = "\x1b[2m", kBold = "\x1b[1m", kReset = "\x1b[0m";

std::string_view color_of(const OutcomeWord& word) {
  switch (word.kind) {
    case OutcomeWord::Kind::fine:
      return kGreen;
    case OutcomeWord::Kind::harm:
      return kRed;
    case OutcomeWord::Kind::standing:
    case OutcomeWord::Kind::refusal:
      return kYellow;
    case OutcomeWord::Kind::none:
      break;
  }
  return kDim;
}

std::string padded(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(width - std::min(width, used), ' ');
}

/// The names in the order in which they first occur.
template <class Name>
std::vector<std::string> in_order(const std::vector<Hazard>& hazards, Name name) {
  std::vector<std::string> names;
  for (const Hazard& hazard : hazards) {
    const std::string& one = name(hazard);
    if (std::find(names.begin(), names.end(), one) == names.end()) names.push_back(one);
  }
  return names;
}

class Matrix {
 public:
  Matrix(const std::vector<Hazard>& hazards, const MatrixOptions& options)
      : options_(options), scenarios_(scenarios_of(hazards)), strategies_(strategies_of(hazards)) {
    for (const Hazard& hazard : hazards) cells_[{hazard.scenario, hazard.strategy}] = &hazard;
    for (const std::string& name : scenarios_) {
      name_width_ = std::max(name_width_, display_width(name));
    }
  }

  /// Strategies are numbered: their names are too long for columns.
  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      out += fmt::format("{:>4} {}\n", i + 1, strategies_[i]);
    }
    const std::size_t room = options_.width == 0
                                 ? strategies_.size()
                                 : (std::max<std::size_t>(static_cast<std::size_t>(options_.width),
                                                          name_width_ + kCell) -
                                    name_width_) /
                                       kCell;
    for (std::size_t from = 0; from < strategies_.size(); from += room) {
      out += "\n" + block(from, std::min(from + room, strategies_.size()));
    }
    return out + "\n" + legend();
  }

 private:
  static constexpr std::size_t kCell = 9;

  const Hazard* find(const std::string& scenario, const std::string& strategy) const {
    const auto found = cells_.find({scenario, strategy});
    return found == cells_.end() ? nullptr : found->second;
  }

  static std::string shown(const Hazard& cell) {
    const OutcomeWord* const word = find_outcome(cell.observed);
    return fmt::format("{}{}", word == nullptr ? "?" : word->shown, outcome_suffix(cell));
  }

  std::string block(std::size_t from, std::size_t to) const {
    std::string out = padded("", name_width_);
    for (std::size_t i = from; i < to; ++i) out += "  " + padded(std::to_string(i + 1), kCell - 2);
    out += "\n";
    for (const std::string& scenario : scenarios_) {
      out += padded(scenario, name_width_);
      for (std::size_t i = from; i < to; ++i) {
        out += "  ";
        const Hazard* const cell = find(scenario, strategies_[i]);
        const std::string text = padded(cell == nullptr ? "" : shown(*cell), kCell - 2);
        out += cell == nullptr ? text : colored(text, *cell);
      }
      out += "\n";
    }
    return out;
  }

  std::string colored(const std::string& text, const Hazard& cell) const {
    const OutcomeWord* const word = find_outcome(cell.observed);
    if (!options_.color || word == nullptr) return text;
    return fmt::format("{}{}{}{}", cell.agrees ? "" : kBold, color_of(*word), text, kReset);
  }

  bool any(const std::function<bool(const Hazard&)>& is_so) const {
    return std::any_of(cells_.begin(), cells_.end(),
                       [&](const auto& cell) { return is_so(*cell.second); });
  }

  std::string legend() const {
    std::string out;
    for (const OutcomeWord& word : outcome_words()) {
      if (!any([&](const Hazard& cell) { return cell.observed == word.outcome; })) continue;
      const std::string shown = padded(word.shown, kCell);
      out += options_.color ? fmt::format("{}{}{}", color_of(word), shown, kReset) : shown;
      out += fmt::format("{}: {}\n", word.outcome, word.meaning);
    }
    if (any([](const Hazard& cell) { return outcome_suffix(cell) == "!"; })) {
      out += padded("!", kCell) + "not what the strategy declares\n";
    }
    if (any(is_unstable)) out += padded("~", kCell) + "not the same in every play\n";
    return out;
  }

  const MatrixOptions options_;
  const std::vector<std::string> scenarios_, strategies_;
  std::map<std::pair<std::string, std::string>, const Hazard*> cells_;
  std::size_t name_width_ = 0;
};

std::string evidence_text(const Hazard& hazard, const char* name) {
  const auto found = hazard.evidence.find(name);
  const auto* text =
      found == hazard.evidence.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

std::string text_of(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.3f}", *number);
  return "";
}

/// Cells of one scenario that ended alike, for the same reason.
struct Same {
  std::string scenario, what, why;
  std::vector<std::string> strategies;
  bool agrees = true;
};

Same same_as(const Hazard& hazard) {
  std::string what = hazard.observed;
  if (!hazard.agrees) what += fmt::format(" (declared: {})", hazard.expected);
  if (is_unstable(hazard)) {
    what += fmt::format(", unstable: {}", evidence_text(hazard, "outcomes"));
  }
  return {.scenario = hazard.scenario,
          .what = std::move(what),
          .why = evidence_text(hazard, "reason"),
          .strategies = {hazard.strategy},
          .agrees = hazard.agrees};
}

}  // namespace

std::vector<std::string> scenarios_of(const std::vector<Hazard>& hazards) {
  return in_order(
      hazards, [](const Hazard& hazard) -> auto& { return hazard.scenario; });
}

std::vector<std::string> strategies_of(const std::vector<Hazard>& hazards) {
  return in_order(
      hazards, [](const Hazard& hazard) -> auto& { return hazard.strategy; });
}

std::string to_matrix(const std::vector<Hazard>& hazards, const MatrixOptions& options) {
  return Matrix(hazards, options).text();
}

std::string to_csv(const std::vector<Hazard>& hazards) {
  std::string out = "scenario,strategy,expected,observed,agrees,reason\n";
  for (const Hazard& hazard : hazards) {
    out += fmt::format("{},{},{},{},{},{}\n", hazard.scenario, hazard.strategy, hazard.expected,
                       hazard.observed, hazard.agrees, csv_field(evidence_text(hazard, "reason")));
  }
  return out;
}

std::string reasons(const std::vector<Hazard>& hazards, const MatrixOptions& options) {
  std::vector<Same> all;
  for (const Hazard& hazard : hazards) {
    if (hazard.agrees && gravity(hazard.observed) == 0) continue;
    Same one = same_as(hazard);
    const auto known = std::find_if(all.begin(), all.end(), [&](const Same& other) {
      return other.scenario == one.scenario && other.what == one.what && other.why == one.why;
    });
    if (known == all.end()) {
      all.push_back(std::move(one));
    } else {
      known->strategies.push_back(hazard.strategy);
    }
  }
  const auto width = static_cast<std::size_t>(std::max(options.width, 0));
  std::string out;
  for (const Same& one : all) {
    std::string line =
        fmt::format("{} / {}: {}", one.scenario, fmt::join(one.strategies, ", "), one.what);
    if (width > 0) line = fold(line, width);
    if (options.color && !one.agrees) line = fmt::format("{}{}{}", kBold, line, kReset);
    out += fmt::format("{}\n  {}\n", line, width > 2 ? fold(one.why, width - 2) : one.why);
  }
  return out;
}

std::string explain(const Hazard& hazard) {
  std::string out = fmt::format("{} / {}: {} ({} declared)\n", hazard.scenario, hazard.strategy,
                                hazard.observed, hazard.expected);
  std::size_t width = 0;
  for (const HazardEvent& event : hazard.timeline) {
    width = std::max(width, display_width(event.who));
  }
  for (const HazardEvent& event : hazard.timeline) {
    out += fmt::format("{:>9.3f} s  {}  {}\n", event.t, padded(event.who, width), event.what);
  }
  for (const auto& [name, value] : hazard.evidence) {
    out += fmt::format("{}: {}\n", name, text_of(value));
  }
  return out;
}

}  // namespace lockbench::results
