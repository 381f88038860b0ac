#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "choose/answer.h"
#include "results/stats/figures.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

/// Writes headings, lines and tables as text or as Markdown.
class Page {
 public:
  explicit Page(const results::Look& look)
      : look_(look), markdown_(look.format == results::Format::markdown) {}

  void heading(const std::string& text) {
    out_ += fmt::format("{}{}{}\n{}", out_.empty() ? "" : "\n", markdown_ ? "### " : "",
                        escaped(text), markdown_ ? "\n" : "");
  }

  void line(const std::string& text) {
    out_ += markdown_ ? "- " + escaped(text) : results::folded("  " + text, look_.style);
    out_ += "\n";
  }

  void table(const results::Table& table) { out_ += results::written({.table = table}, look_); }

  std::string take() { return std::move(out_); }

 private:
  std::string escaped(const std::string& text) const {
    const std::string shown = results::printable(text);
    return markdown_ ? results::markdown_text(shown) : results::styled(shown, look_.style);
  }

  const results::Look& look_;
  const bool markdown_;
  std::string out_;
};

std::string with_evidence(const std::string& text, const std::string& evidence) {
  return evidence.empty() ? text : fmt::format("{} [{}]", text, evidence);
}

std::string text_of(const Reason& reason) {
  if (reason.requirement.empty()) return reason.text;
  return fmt::format("{}: {}", reason.requirement, reason.text);
}

std::string value_of(const Answer& answer, const Candidate& one) {
  if (!one.value) return "not measured";
  const results::Unit unit = results::compared_figure(answer.ranked_by.figure).unit;
  return fmt::format("{}{}{}", one.at_least ? "≥ " : "", results::human(*one.value, unit),
                     one.only_invalid_runs ? " (invalid run)" : "");
}

void add_objectives(const Answer& answer, Page& page) {
  for (const results::Threshold& slo : answer.requirements.slos) {
    const std::string option = option_of(slo);
    const auto open = std::ranges::count_if(answer.ranked, [&](const Candidate& one) {
      const auto& kept = one.in_favour;
      return std::ranges::find(kept, option, &Reason::requirement) == kept.end();
    });
    if (open > 0) page.line(fmt::format("{}: not shown for {} of them", option, open));
  }
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
      {{"tier", "", "tier", Unit::count, 1, by_figure},
       [](const Candidate& one) -> results::Cell {
         return one.tier == 0 ? results::Cell() : results::Cell(one.tier);
       }},
      {{"servers", "", "servers", Unit::count, 2},
       [](const Candidate& one) { return one.servers; }},
      {{"commands", "", "cmds/section", Unit::number, 3},
       [](const Candidate& one) { return one.commands; }},
      {{"hazards", "", "falls to", Unit::count, 4},
       [](const Candidate& one) { return static_cast<int>(one.hazards.size()); }},
      {{"but", "", "but", Unit::text, 5, results::Show::if_any},
       [](const Candidate& one) { return one.drawback; }}};
  page.table(shown(results::table_of(fields, answer.ranked)));
  add_objectives(answer, page);
  const auto any = [&](const auto& has) {
    return std::any_of(answer.ranked.begin(), answer.ranked.end(), has);
  };
  const bool any_drawback = any([](const Candidate& one) { return !one.drawback.empty(); });
  page.line(fmt::format("order: {}{}fewer servers, fewer commands, fewer plays that it falls to",
                        any_drawback ? "without a \"but\", then " : "",
                        ranked_by.figure.empty() ? "" : "tier, then within twice its best, then "));
  if (any([](const Candidate& one) { return one.only_invalid_runs; })) {
    page.line(
        "invalid run: the generator, other programs or an injected fault disturbed it, so its "
        "figure is not the lock's (lockbench show FILE)");
  }
  if (answer.measured_in.empty()) {
    page.line("no figures: no measurement has clients that wait for one another (--measure)");
  } else if (!ranked_by.figure.empty()) {
    page.line(fmt::format("measured in {}", answer.measured_in));
    if (!answer.differences.empty()) {
      page.line(fmt::format("that load differs from yours: {} (--measure runs yours)",
                            fmt::join(answer.differences, ", ")));
    }
  }
  if (!answer.assumption.empty() && !ranked_by.figure.empty()) page.line(answer.assumption);
  for (const std::string& file : answer.left_out) {
    page.line(fmt::format("left out, as its figures are not comparable: {}", file));
  }
}

void add_best(const Answer& answer, Page& page) {
  const Candidate& best = answer.ranked.front();
  const Descriptor& strategy = *best.strategy;
  page.heading(fmt::format("{}: {}", strategy.name, strategy.summary));
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
    page.line(
        with_evidence(fmt::format("{}{}{}: {}", setting.option, setting.value.empty() ? "" : " ",
                                  setting.value, setting.because),
                      setting.evidence));
  }
  page.line("try it: " + answer.check);
  page.heading("In your code");
  std::vector<std::string_view> without{"Java", "Go", "Python", "JavaScript"};
  for (const Library& library : libraries_for(strategy, answer.requirements)) {
    page.line(fmt::format("{}: {}: {}", library.language, library.name,
                          setup_of(library, best.settings)));
    std::erase(without, library.language);
  }
  if (!without.empty()) {
    page.line(fmt::format("{}: no known library implements it", fmt::join(without, ", ")));
  }
  page.line("guard in the protected table: " + answer.guard);
}

void add_nothing(const Answer& answer, Page& page) {
  page.heading(fmt::format("none of {} strategies qualifies", answer.ruled_out.size()));
  for (const Relaxation& one : answer.relaxations) {
    page.line(fmt::format("without {}: {}{}{}", fmt::join(one.requirements, " and "),
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
  struct Group {
    std::string why, evidence;
    std::vector<std::string_view> strategies;
  };
  std::vector<Group> groups;
  for (const Candidate& candidate : answer.ruled_out) {
    for (const Reason& reason : candidate.against) {
      const std::string why = text_of(reason);
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&](const Group& one) { return one.why == why; });
      if (group == groups.end()) {
        group = groups.insert(groups.end(),
                              {why, in_general(reason.evidence, *candidate.strategy), {}});
      }
      group->strategies.push_back(candidate.strategy->name);
      // Without the store, the other reasons do not matter.
      if (reason.requirement.starts_with("--stores")) break;
    }
  }
  if (!groups.empty()) page.heading("Ruled out");
  for (const Group& group : groups) {
    page.line(with_evidence(fmt::format("{}: {}", group.why, fmt::join(group.strategies, ", ")),
                            group.evidence));
  }
}

}  // namespace

std::string to_text(const Answer& answer, const results::Look& look) {
  Page page(look);
  if (answer.ranked.empty()) {
    add_nothing(answer, page);
  } else {
    add_ranking(answer, page);
    add_best(answer, page);
  }
  if (!answer.observations.empty()) {
    page.heading("With any lock");
    for (const std::string& line : answer.observations) page.line(line);
  }
  add_ruled_out(answer, page);
  return page.take();
}

}  // namespace lockbench::choose
