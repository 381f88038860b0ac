#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <utility>
#include <vector>

#include "choose/answer.h"
#include "results/file/loads.h"
#include "results/stats/figures.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

/// Writes headings, lines and tables.
class Page {
 public:
  explicit Page(const results::TextStyle& style) : style_(style) {}

  void heading(const std::string& text) {
    out_ += (out_.empty() ? "" : "\n") + results::folded(text, style_) + "\n";
  }

  void line(const std::string& text, const std::string& label = "") {
    constexpr std::size_t kLeast = 20;  // columns
    const std::string indent(2 + label.size(), ' ');
    results::TextStyle style = style_;
    if (style.width) style.width = std::max(*style.width, indent.size() + kLeast) - indent.size();
    std::string folded = results::folded(text, style);
    boost::replace_all(folded, "\n  ", "\n" + indent);
    out_ += "  " + label + folded + "\n";
  }

  /// Lines of one subject, in the brief answer. Their label stands at the first.
  void part(std::string_view label, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      line(lines[i], fmt::format("{:<11}", i == 0 ? label : std::string_view()));
    }
  }

  /// As it is, to be copied.
  void code(std::string_view label, const std::string& text) {
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      out_ += fmt::format("  {:<11}{}\n", begin == 0 ? label : std::string_view(),
                          results::printable(text.substr(begin, end - begin)));
    }
  }

  void table(const results::Table& table) { out_ += results::to_text({.table = table}, style_); }

  std::string take() { return std::move(out_); }

 private:
  const results::TextStyle& style_;
  std::string out_;
};

std::string with_evidence(const std::string& text, const std::string& evidence) {
  return evidence.empty() ? text : fmt::format("{} [{}]", text, evidence);
}

std::string text_of(const Reason& reason) {
  if (reason.requirement.empty()) return reason.text;
  constexpr std::string_view kWaive = "--waive ";
  if (reason.requirement.starts_with(kWaive)) {
    return fmt::format("{}, which every lock should survive ({}): {}",
                       reason.requirement.substr(kWaive.size()), reason.requirement, reason.text);
  }
  return fmt::format("{}: {}", reason.requirement, reason.text);
}

std::string value_of(const Answer& answer, const Candidate& one) {
  if (!one.value) return "not measured";
  const results::Unit unit = results::compared_figure(answer.ranked_by.figure).unit;
  return fmt::format("{}{}{}", one.at_least ? "≥ " : "", results::human(*one.value, unit),
                     one.only_invalid_runs ? " (invalid run)" : "");
}

std::string simulated_value(const Answer& answer, const Candidate& one) {
  if (!one.simulated) return "";
  const results::Unit unit = results::compared_figure(answer.ranked_by.figure).unit;
  return (one.simulated->at_least ? "≥ " : "") + results::human(one.simulated->value, unit);
}

std::string text_of(const Setting& setting) {
  return fmt::format("{}{}{}: {}", setting.option, setting.value.empty() ? "" : " ", setting.value,
                     setting.because);
}

void add_ranking(const Answer& answer, Page& page) {
  const RankingFigure& ranked_by = answer.ranked_by;
  page.heading(
      fmt::format("{} of {} strategies qualify{}", answer.ranked.size(),
                  answer.ranked.size() + answer.ruled_out.size(),
                  ranked_by.figure.empty()
                      ? ""
                      : fmt::format(", by {} ({}; {} is better)", ranked_by.figure, ranked_by.why,
                                    ranked_by.higher_is_better ? "higher" : "lower")));
  using results::Unit;
  const auto by_figure = ranked_by.figure.empty() ? results::Show::if_asked : results::Show::always;
  const std::vector<results::Field<Candidate>> fields{
      {{"strategy", "", "strategy"}, [](const Candidate& one) { return one.strategy->name; }},
      {{"value", "", ranked_by.figure, Unit::number, 0, by_figure},
       [&](const Candidate& one) { return value_of(answer, one); }},
      {{"simulated", "simulated", "your load", Unit::number, 1, results::Show::if_any},
       [&](const Candidate& one) { return simulated_value(answer, one); }},
      {{"tier", "", "tier", Unit::count, 1, by_figure},
       [](const Candidate& one) -> results::Cell {
         return one.tier == 0 ? results::Cell() : results::Cell(one.tier);
       }},
      {{"servers", "", "servers", Unit::count, 2},
       [](const Candidate& one) { return one.servers; }},
      {{"commands", "", "cmds/section", Unit::number, 3},
       [](const Candidate& one) { return one.commands; }},
      {{"hazards", "", "plays that harm it", Unit::count, 4},
       [](const Candidate& one) { return static_cast<int>(one.hazards.size()); }},
      {{"but", "", "but", Unit::text, 5, results::Show::if_any},
       [](const Candidate& one) { return one.drawback; }}};
  page.table(shown(results::table_of(fields, answer.ranked)));
  const bool simulated = std::ranges::any_of(
      answer.ranked, [](const Candidate& one) { return one.simulated.has_value(); });
  page.line(fmt::format("order: without a \"but\", {}{}fewer servers, commands, plays that harm it",
                        simulated ? "measured, within twice the best simulated, " : "",
                        ranked_by.figure.empty() ? "" : "tier, within twice its best, "));
}

void add_best(const Answer& answer, Page& page) {
  const Candidate& best = answer.ranked.front();
  const Descriptor& strategy = *best.strategy;
  page.heading(fmt::format("Evidence for {}", strategy.name));
  for (const Reason& reason : best.in_favour) {
    page.line(with_evidence(text_of(reason), reason.evidence));
  }
  for (const Reason& reason : best.conditions) {
    const std::string seen = reason.detail.empty() ? "" : fmt::format(" ({})", reason.detail);
    page.line("note: " + with_evidence(text_of(reason) + seen, reason.evidence));
  }
  if (!strategy.source.empty()) page.line(fmt::format("protocol: {}", strategy.source));
  if (!answer.takeovers.empty()) page.heading("Takeover");
  for (const Takeover& one : answer.takeovers) {
    page.line(with_evidence(fmt::format("after {}: {}", one.after, one.text), one.evidence));
  }
  page.heading("Settings");
  for (const Setting& setting : best.settings) {
    page.line(with_evidence(text_of(setting), setting.evidence));
  }
  page.heading("Libraries");
  std::vector<std::string_view> without{"Java", "Go", "Python", "JavaScript"};
  for (const Library& library : libraries_for(strategy, answer.requirements)) {
    const std::string setup = setup_of(library, answer);
    page.line(fmt::format("{}: {}{}{}{}", library.language, library.similar ? "only similar: " : "",
                          library.name, setup.empty() ? "" : ": ", setup));
    if (!library.similar) std::erase(without, library.language);
  }
  if (!without.empty()) {
    page.line(fmt::format("{}: no known library implements it", fmt::join(without, ", ")));
  }
  page.line("the code of this answer was run on real servers, Redisson's was only compiled");
  page.line("guard in the protected table: " + answer.guard);
}

void add_nothing(const Answer& answer, Page& page) {
  page.heading(fmt::format("none of {} strategies qualifies", answer.ruled_out.size()));
  for (const Relaxation& one : answer.relaxations) {
    std::vector<std::string> dropped;
    for (const std::string& requirement : one.requirements) {
      dropped.push_back((requirement.starts_with("--waive") ? "with " : "without ") + requirement);
    }
    page.line(fmt::format("{}: {}{}{}", fmt::join(dropped, " and "),
                          fmt::join(one.strategies, ", "),
                          one.instead.empty() ? "" : "; instead: ", fmt::join(one.instead, "; ")));
  }
  if (answer.relaxations.empty()) page.line("dropping requirements does not help");
}

/// The evidence for any strategy.
std::string in_general(const std::string& evidence, const Descriptor& strategy) {
  const std::string own = fmt::format("/{}", strategy.name);
  if (!evidence.ends_with(own)) return evidence;
  return evidence.substr(0, evidence.size() - own.size()) + "/STRATEGY";
}

/// A line for each reason, with the strategies that it rules out.
void add_ruled_out(const Answer& answer, Page& page) {
  struct Line {
    std::string why, evidence;
    std::string_view strategy;
  };
  std::vector<Line> lines;
  for (const Candidate& candidate : answer.ruled_out) {
    const Descriptor& strategy = *candidate.strategy;
    for (const Reason& reason : candidate.against) {
      lines.push_back({text_of(reason), in_general(reason.evidence, strategy), strategy.name});
      // Without the store, the other reasons do not matter.
      if (reason.requirement.starts_with("--stores")) break;
    }
  }
  if (!lines.empty()) page.heading("Ruled out");
  for (const auto& [why, its] : results::grouped(lines, &Line::why)) {
    const auto strategies = results::each_of(its, &Line::strategy);
    page.line(with_evidence(fmt::format("{}: {}", why, fmt::join(strategies, ", ")),
                            its.front()->evidence));
  }
}

std::string plural(std::string_view what, double number) {
  return fmt::format("{} {}{}", results::human_number(number), what, number == 1 ? "" : "s");
}

/// "acquire.p99 11.2 ms, 2 commands a section, 1 server".
std::string price_of(const Answer& answer, const Candidate& one) {
  std::vector<std::string> words;
  if (!answer.ranked_by.figure.empty()) {
    words.push_back(fmt::format("{} {}", answer.ranked_by.figure, value_of(answer, one)));
  }
  if (one.simulated) {
    words.push_back(fmt::format("simulated under your load {}", simulated_value(answer, one)));
  }
  if (one.commands) words.push_back(plural("command", *one.commands) + " a section");
  words.push_back(plural("server", one.servers));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The place among those that qualify, and what it rests on.
std::vector<std::string> rank_lines(const Answer& answer) {
  const Candidate& best = answer.ranked.front();
  const auto& ranked_by = answer.ranked_by;
  std::string first =
      fmt::format("first of {} that qualify: {}", answer.ranked.size(), price_of(answer, best));
  if (answer.ranked.size() > 1) {
    const Candidate& next = answer.ranked[1];
    const bool as_good = best.tier != 0 && next.tier == best.tier && next.behind == best.behind &&
                         next.drawback.empty();
    first += fmt::format("; {}: {} ({}{})", as_good ? "not told apart from" : "next",
                         next.strategy->name, price_of(answer, next),
                         next.drawback.empty() ? "" : ", " + next.drawback);
  }
  std::vector<std::string> lines{std::move(first)};
  if (ranked_by.figure.empty()) {
    lines.push_back(ranked_by.why + ": fewer servers, commands and harmful plays decide");
  } else if (answer.measured_in.empty()) {
    lines.emplace_back("nothing is measured for this load: --measure does it");
  } else if (best.only_invalid_runs || best.tier == 0) {
    lines.push_back(
        fmt::format("no measured winner: no valid run of it in {}", answer.measured_in));
  } else {
    lines.push_back(fmt::format(
        "measured in {}{}{}", answer.measured_in,
        best.left_out == 0 ? fmt::format(", {} runs", best.runs)
                           : fmt::format(", {} of {} runs, the others are invalid", best.runs,
                                         best.runs + best.left_out),
        answer.differences.empty()
            ? ""
            : fmt::format("; your load differs: {}", fmt::join(answer.differences, ", "))));
  }
  for (const std::string& file : answer.left_out) lines.push_back("left out: " + file);
  if (!answer.assumption.empty() && !ranked_by.figure.empty()) {
    lines[1] += "; " + answer.assumption;
  }
  return lines;
}

/// The faults that the first choice survives.
std::string survived(const Answer& answer) {
  const Candidate& best = answer.ranked.front();
  std::vector<std::string> words;
  for (const Survival& fault : faults_to_survive(answer.requirements)) {
    const auto& others = best.not_concerned;
    if (std::ranges::find(others, fault.word) != others.end()) continue;
    words.push_back(fault.word + (fault.longest ? " of " + format_duration(*fault.longest) : ""));
  }
  std::string text = fmt::format("survives {}", fmt::join(words, ", "));
  if (!best.not_concerned.empty()) {
    text +=
        fmt::format("; not played, as it does not apply: {}", fmt::join(best.not_concerned, ", "));
  }
  return text;
}

std::vector<std::string> reasons_for(const Answer& answer) {
  std::vector<std::string> lines;
  for (const Takeover& one : answer.takeovers) {
    if (lines.size() < 3) lines.push_back(fmt::format("after {}: {}", one.after, one.text));
  }
  lines.push_back(survived(answer));
  for (std::string& line : rank_lines(answer)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> condition_lines(const Candidate& best) {
  constexpr std::size_t kMost = 4;
  std::vector<Reason> conditions = best.needs;
  conditions.insert(conditions.end(), best.conditions.begin(), best.conditions.end());
  // What the user's server does not meet comes first.
  std::ranges::stable_sort(conditions, {},
                           [](const Reason& one) { return one.kept.value_or(true); });
  auto lines = results::each_of(conditions, [](const Reason& reason) { return text_of(reason); });
  if (lines.size() > kMost) {
    const std::size_t more = lines.size() - kMost + 1;
    lines.resize(kMost - 1);
    lines.push_back(fmt::format("and {} more: --why", more));
  }
  return lines;
}

/// The strategy in use: its price, what breaks it, and what the first choice adds.
void add_today(const Answer& answer, Page& page) {
  const Candidate* const today = find_candidate(answer, answer.requirements.today);
  if (today == nullptr) return;
  std::vector<std::string> lines{
      fmt::format("{}: {}", today->strategy->name, price_of(answer, *today))};
  std::vector<std::string> against;
  for (const Reason& reason : today->against) {
    against.push_back(reason.requirement + ": " + reason.text);
  }
  const std::string& drawback = today->drawback;
  lines.push_back(!against.empty() ? fmt::format("fails {}", fmt::join(against, "; "))
                                   : "meets these requirements" +
                                         (drawback.empty() ? "" : ", but: " + drawback));
  if (!today->not_survived.empty()) {
    lines.push_back(fmt::format("breaks by {}", fmt::join(today->not_survived, ", ")));
  }
  if (!answer.ranked.empty()) {
    const Candidate& best = answer.ranked.front();
    const bool better = !today->qualifies() || today->behind > best.behind ||
                        (best.tier != 0 && today->tier > best.tier);
    lines.push_back(
        best.strategy == today->strategy ? "none of the others is better"
        : better ? fmt::format("better: {}, for {}", best.strategy->name, price_of(answer, best))
                 : "no better one is shown");
  }
  page.part("today", lines);
}

void add_code(const Answer& answer, Page& page) {
  constexpr std::size_t kMostLines = 8;  // so that the answer stays short
  const Descriptor& strategy = *answer.ranked.front().strategy;
  std::size_t lines = 0;
  std::vector<std::string> others;
  for (const Code& code : answer.code) {
    const auto its = static_cast<std::size_t>(std::ranges::count(code.text, '\n'));
    if (lines > 0 && lines + its > kMostLines) {
      others.push_back(code.language);
      continue;
    }
    lines += its;
    page.code(code.language == "any" ? "code" : code.language, code.text);
  }
  if (!others.empty()) {
    page.part("", {fmt::format("also for {}: --language", fmt::join(others, ", "))});
  }
  if (is_recipe(strategy)) {
    page.part("recipe", {fmt::format("strategies/{}/ has its source; ask for its licence before "
                                     "you copy it",
                                     strategy.backend)});
  } else if (answer.code.empty()) {
    std::vector<std::string> libraries;
    const auto& wanted = answer.requirements.languages;
    for (const Library& one : strategy.libraries) {
      const bool asked = wanted.empty() || one.language == "any" ||
                         std::ranges::find(wanted, one.language) != wanted.end();
      if (!asked || one.similar) continue;
      libraries.push_back(fmt::format("{}: {}: {}", one.language, one.name, setup_of(one, answer)));
    }
    page.part("library", libraries);
  }
}

void add_brief(const Answer& answer, Page& page) {
  const Candidate& best = answer.ranked.front();
  const auto missed = std::ranges::find(best.conditions, std::optional(false), &Reason::kept);
  page.heading(fmt::format(
      "{}{}: {}",
      missed != best.conditions.end()
          ? fmt::format("No lock is shown to keep {}; first to measure: ", missed->requirement)
      : answer.too_busy.empty() ? "Use "
                                : "Then use ",
      best.strategy->name, best.strategy->summary));
  add_today(answer, page);
  page.part("because", reasons_for(answer));
  if (!best.drawback.empty()) page.part("but", {best.drawback});
  page.part("settings",
            results::each_of(best.settings, [](const Setting& one) { return text_of(one); }));
  page.part("only if", condition_lines(best));
  if (!best.not_survived.empty()) {
    page.part("breaks by", {fmt::format("{}", fmt::join(best.not_survived, ", "))});
  }
  // Who compares with the lock in use asks for its code by --language.
  if (answer.requirements.today.empty() || !answer.requirements.languages.empty()) {
    add_code(answer, page);
  }
  std::vector<std::string> next{answer.check};
  // A load that no lock can carry is not measured.
  const bool measurable = !answer.ranked_by.figure.empty() && answer.taken < 1;
  next.push_back(fmt::format(
      "the same command with {}--why: the evidence",
      answer.differences.empty() || !measurable ? "" : "--measure: your load; or with "));
  page.part("next", next);
}

}  // namespace

std::string to_text(const Answer& answer, const results::TextStyle& style, bool why) {
  Page page(style);
  if (!answer.too_busy.empty()) page.heading(answer.too_busy);
  if (answer.ranked.empty()) {
    add_nothing(answer, page);
    add_today(answer, page);
    if (!why) page.line("the same command with --why: the evidence");
  } else {
    add_brief(answer, page);
  }
  if (!why) return page.take();
  if (!answer.ranked.empty()) {
    add_ranking(answer, page);
    add_best(answer, page);
  }
  add_ruled_out(answer, page);
  return page.take();
}

}  // namespace lockbench::choose
