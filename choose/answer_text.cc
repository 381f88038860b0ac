#include "choose/answer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "choose/figure_text.h"
#include "results/tables/formats.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

/// Writes headings, lines and tables as text or as Markdown.
class Page {
 public:
  explicit Page(const TextLook& look) : look_(look) {}

  void heading(const std::string& text) {
    out_ += fmt::format("{}{}{}\n{}", out_.empty() ? "" : "\n", look_.markdown ? "### " : "",
                        escaped(text), look_.markdown ? "\n" : "");
  }

  void line(const std::string& text) {
    if (look_.markdown) {
      out_ += fmt::format("- {}\n", escaped(text));
      return;
    }
    const std::string whole = "  " + results::printable(text);
    const auto width = static_cast<std::size_t>(std::max(look_.width, 0));
    out_ += (width == 0 ? whole : results::fold(whole, width)) + "\n";
  }

  void table(const results::Table& table) {
    out_ += look_.markdown ? results::to_markdown(table, {}) : results::to_text(table, {}, {});
  }

  std::string take() { return std::move(out_); }

 private:
  std::string escaped(const std::string& text) const {
    const std::string shown = results::printable(text);
    return look_.markdown ? results::markdown_text(shown) : shown;
  }

  TextLook look_;
  std::string out_;
};

std::string with_evidence(const std::string& text, const std::string& evidence) {
  return evidence.empty() ? text : fmt::format("{} [{}]", text, evidence);
}

std::string sentence(const Reason& reason) {
  const std::string text = reason.requirement.empty()
                               ? reason.text
                               : fmt::format("{}: {}", reason.requirement, reason.text);
  return with_evidence(text, reason.evidence);
}

/// With what was observed.
std::string full_sentence(const Reason& reason) {
  Reason full = reason;
  if (!full.detail.empty()) full.text += fmt::format(" ({})", full.detail);
  return sentence(full);
}

std::string value_of(const Answer& answer, const Ranked& one) {
  if (!one.value) return "not measured";
  return shown_figure(answer.yardstick.figure, *one.value) + (one.doubtful ? " (invalid run)" : "");
}

std::string remark(const Ranked& one) {
  if (one.better == nullptr) return "";
  return fmt::format("{} survives {} too", one.better->strategy->name,
                     fmt::join(one.falls_to, ", "));
}

void add_ranking(const Answer& answer, Page& page) {
  page.heading(fmt::format("{} of {} strategies qualify, by {} ({}; {} is better)",
                           answer.ranked.size(), answer.candidates.size(), answer.yardstick.figure,
                           answer.yardstick.why,
                           answer.yardstick.higher_is_better ? "higher" : "lower"));
  const std::vector<results::Field<Ranked>> fields{
      {{"strategy", "", "strategy"},
       [](const Ranked& one) { return one.candidate->strategy->name; }},
      {{"value", "", answer.yardstick.figure, results::Unit::number},
       [&](const Ranked& one) { return value_of(answer, one); }},
      {{"but", "", "but", results::Unit::text, 0, results::Show::if_any}, remark}};
  page.table(shown(results::table_of(fields, answer.ranked)));
  if (!answer.measured_in.empty()) {
    page.line(fmt::format("measured in {}", answer.measured_in));
  }
  for (const std::string& file : answer.left_out) {
    page.line(fmt::format("left out, as its figures are not comparable: {}", file));
  }
}

void add_best(const Answer& answer, Page& page) {
  const Candidate& best = *answer.ranked.front().candidate;
  const Descriptor& strategy = *best.strategy;
  page.heading(fmt::format("{}: {}", strategy.name, strategy.summary));
  for (const Reason& reason : best.in_favour) page.line(sentence(reason));
  for (const Reason& reason : best.conditions) page.line("note: " + full_sentence(reason));
  if (!strategy.source.empty()) page.line(fmt::format("protocol: {}", strategy.source));
  page.heading("Settings");
  for (const Setting& setting : answer.settings) {
    page.line(
        with_evidence(fmt::format("{}{}{}: {}", setting.option, setting.value.empty() ? "" : " ",
                                  setting.value, setting.because),
                      setting.evidence));
  }
  page.line("try it: " + answer.check);
}

void add_nothing(const Answer& answer, Page& page) {
  page.heading(fmt::format("none of {} strategies qualifies", answer.candidates.size()));
  for (const Concession& concession : answer.concessions) {
    page.line(fmt::format("without {}: {}", concession.requirement,
                          fmt::join(concession.strategies, ", ")));
  }
  if (answer.concessions.empty()) page.line("dropping any single requirement does not help");
}

/// What rules it out, in words that fit every strategy that is ruled out for the same reasons.
std::string in_general(const Candidate& candidate) {
  std::vector<std::string> sentences;
  for (const Reason& reason : candidate.against) {
    std::string words = sentence(reason);
    const std::string own = fmt::format("/{}]", candidate.strategy->name);
    if (words.ends_with(own)) words.replace(words.size() - own.size(), own.size(), "/STRATEGY]");
    sentences.push_back(std::move(words));
    // Without the store, the other reasons do not matter.
    if (reason.requirement.starts_with("--stores")) break;
  }
  return fmt::format("{}", fmt::join(sentences, "; "));
}

void add_ruled_out(const Answer& answer, Page& page) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> groups;
  for (const Candidate& candidate : answer.candidates) {
    if (candidate.qualifies()) continue;
    const std::string why = in_general(candidate);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& one) { return one.first == why; });
    if (group == groups.end()) group = groups.insert(groups.end(), {why, {}});
    group->second.push_back(candidate.strategy->name);
  }
  if (!groups.empty()) page.heading("Ruled out");
  for (const auto& [why, strategies] : groups) {
    page.line(fmt::format("{}: {}", fmt::join(strategies, ", "), why));
  }
}

}  // namespace

std::string to_text(const Answer& answer, const TextLook& look) {
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
