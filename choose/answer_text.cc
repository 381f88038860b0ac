#include "choose/answer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "choose/figure_text.h"
#include "results/experiment_sheet.h"
#include "results/markdown.h"
#include "results/text.h"

namespace lockbench::choose {
namespace {

/// Writes headings, lines and tables in either of two looks.
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

  void table(results::TextSheet sheet) {
    for (auto& row : sheet.rows) {
      for (std::string& cell : row) cell = escaped(cell);
    }
    out_ += look_.markdown ? results::to_markdown(sheet) : results::to_table(sheet);
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

std::string value_of(const Answer& answer, const Ranked& one) {
  return one.value ? shown_figure(answer.yardstick.figure, *one.value) : "not measured";
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
  results::TextSheet sheet;
  sheet.titles = {"strategy", answer.yardstick.figure, "but"};
  for (const Ranked& one : answer.ranked) {
    sheet.rows.push_back(
        {std::string(one.candidate->strategy->name), value_of(answer, one), remark(one)});
  }
  page.table(std::move(sheet));
  if (!answer.measured_in.empty()) {
    page.line(fmt::format("measured in {}", answer.measured_in));
  }
}

void add_best(const Answer& answer, Page& page) {
  const Candidate& best = *answer.ranked.front().candidate;
  const Descriptor& strategy = *best.strategy;
  page.heading(fmt::format("{}: {}", strategy.name, strategy.summary));
  for (const Reason& reason : best.in_favour) page.line(sentence(reason));
  for (const Reason& reason : best.conditions) page.line("mind " + sentence(reason));
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
  if (answer.concessions.empty()) page.line("no single requirement, dropped, would let one in");
}

/// Stores that are not at hand rule many out for one and the same reason.
void add_ruled_out(const Answer& answer, Page& page) {
  const auto qualify = answer.ranked.size();
  if (qualify == answer.candidates.size()) return;
  page.heading("Ruled out");
  std::map<std::string, std::vector<std::string_view>> elsewhere;
  for (const Candidate& candidate : answer.candidates) {
    if (candidate.qualifies()) continue;
    const Reason& first = candidate.against.front();
    if (first.requirement.starts_with("--stores")) {
      elsewhere[fmt::format("{}: {}", first.requirement, first.text)].push_back(
          candidate.strategy->name);
      continue;
    }
    std::vector<std::string> sentences;
    for (const Reason& reason : candidate.against) sentences.push_back(sentence(reason));
    page.line(fmt::format("{}: {}", candidate.strategy->name, fmt::join(sentences, "; ")));
  }
  for (const auto& [reason, strategies] : elsewhere) {
    page.line(fmt::format("{}: {}", reason, fmt::join(strategies, ", ")));
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
    page.heading("Whatever the lock");
    for (const std::string& line : answer.observations) page.line(line);
  }
  add_ruled_out(answer, page);
  return page.take();
}

}  // namespace lockbench::choose
