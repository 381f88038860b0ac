#include "results/hazard_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "results/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kGreen = "\x1b[32m", kRed = "\x1b[31m", kYellow = "\x1b[33m",
                           kDim = "\x1b[2m", kBold = "\x1b[1m", kReset = "\x1b[0m";

/// An outcome as a cell shows it, and as the legend explains it.
struct Word {
  std::string_view outcome, shown, color, meaning;
};

constexpr std::array<Word, 11> kWords{{
    {"safe", "safe", kGreen, "what the scenario asks about did not happen"},
    {"recovers", "back", kGreen, "the lock came back by itself"},
    {"double-grant", "double", kRed, "two held it at once"},
    {"lost-update", "lost", kRed, "a stale write reached the protected counter"},
    {"foreign-release", "freed", kRed, "a release freed another's lock"},
    {"foreign-renewal", "renewed", kRed, "a renewal prolonged another's lock"},
    {"stuck", "stuck", kYellow, "nobody gets the lock any more"},
    {"self-deadlock", "self", kYellow, "its holder waits for itself"},
    {"unavailable", "down", kYellow, "nobody can lock"},
    {"refused", "refused", kYellow, "no lock rather than a doubtful one"},
    {"not-applicable", "·", kDim, "does not concern it"},
}};

const Word* find_word(std::string_view outcome) {
  const auto found = std::find_if(kWords.begin(), kWords.end(),
                                  [&](const Word& word) { return word.outcome == outcome; });
  return found == kWords.end() ? nullptr : found;
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
      : options_(options),
        scenarios_(in_order(
            hazards, [](const Hazard& h) -> auto& { return h.scenario; })),
        strategies_(in_order(
            hazards, [](const Hazard& h) -> auto& { return h.strategy; })) {
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

  std::string markdown() const {
    std::string head = "| scenario |", rule = "|---|";
    for (const std::string& strategy : strategies_) {
      head += fmt::format(" {} |", strategy);
      rule += "---|";
    }
    std::string out = head + "\n" + rule + "\n";
    for (const std::string& scenario : scenarios_) {
      out += fmt::format("| {} |", scenario);
      for (const std::string& strategy : strategies_) {
        const Hazard* const cell = find(scenario, strategy);
        out += fmt::format(" {} |", cell == nullptr ? "" : shown(*cell));
      }
      out += "\n";
    }
    return out;
  }

 private:
  static constexpr std::size_t kCell = 9;

  const Hazard* find(const std::string& scenario, const std::string& strategy) const {
    const auto found = cells_.find({scenario, strategy});
    return found == cells_.end() ? nullptr : found->second;
  }

  static std::string shown(const Hazard& cell) {
    const Word* const word = find_word(cell.observed);
    const std::string text(word == nullptr ? "?" : word->shown);
    return cell.agrees ? text : text + "!";
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
    const Word* const word = find_word(cell.observed);
    if (!options_.color || word == nullptr) return text;
    return fmt::format("{}{}{}{}", cell.agrees ? "" : kBold, word->color, text, kReset);
  }

  std::string legend() const {
    std::string out;
    bool surprises = false;
    for (const Word& word : kWords) {
      const bool occurs = std::any_of(cells_.begin(), cells_.end(), [&](const auto& cell) {
        return cell.second->observed == word.outcome;
      });
      if (!occurs) continue;
      const std::string shown = padded(word.shown, kCell);
      out += fmt::format("{}{}: {}\n",
                         options_.color ? fmt::format("{}{}{}", word.color, shown, kReset) : shown,
                         word.outcome, word.meaning);
    }
    for (const auto& [place, cell] : cells_) surprises = surprises || !cell->agrees;
    if (surprises) out += padded("!", kCell) + "not what the strategy declares\n";
    return out;
  }

  const MatrixOptions options_;
  const std::vector<std::string> scenarios_, strategies_;
  std::map<std::pair<std::string, std::string>, const Hazard*> cells_;
  std::size_t name_width_ = 0;
};

std::string reason_of(const Hazard& hazard) {
  const auto found = hazard.evidence.find("reason");
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

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string to_matrix(const std::vector<Hazard>& hazards, const MatrixOptions& options) {
  return Matrix(hazards, options).text();
}

std::string to_matrix_markdown(const std::vector<Hazard>& hazards) {
  return Matrix(hazards, {}).markdown();
}

std::string to_csv(const std::vector<Hazard>& hazards) {
  std::string out = "scenario,strategy,expected,observed,agrees,reason\n";
  for (const Hazard& hazard : hazards) {
    out += fmt::format("{},{},{},{},{},{}\n", hazard.scenario, hazard.strategy, hazard.expected,
                       hazard.observed, hazard.agrees, quoted(reason_of(hazard)));
  }
  return out;
}

bool is_unsafe(std::string_view outcome) {
  return outcome != "safe" && outcome != "recovers" && outcome != "not-applicable";
}

std::string reasons(const std::vector<Hazard>& hazards, const MatrixOptions& options) {
  std::string out;
  for (const Hazard& hazard : hazards) {
    if (hazard.agrees && !is_unsafe(hazard.observed)) continue;
    std::string line =
        fmt::format("{} / {}: {}", hazard.scenario, hazard.strategy, hazard.observed);
    if (!hazard.agrees) line += fmt::format(" (declared: {})", hazard.expected);
    if (options.color && !hazard.agrees) line = fmt::format("{}{}{}", kBold, line, kReset);
    out += fmt::format("{}\n  {}\n", line, reason_of(hazard));
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
