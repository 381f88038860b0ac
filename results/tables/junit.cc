#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results/file/loads.h"
#include "results/tables/formats.h"
#include "results/tables/show.h"

namespace lockbench::results {
namespace {

using Judged = Check::Outcome;

std::string xml_text(std::string_view text) { return html_text(text, 2000); }

/// The element that tells each outcome; empty: none does.
constexpr std::array<std::string_view, 4> kElements{"", "failure", "error", "skipped"};

Check check_of(const Hazard& hazard) {
  Check check{hazard.strategy, hazard.scenario};
  const std::string reason = text_in(hazard.evidence, "reason");
  if (hazard.observed == "not-applicable" || hazard.observed == "not-played") {
    check.outcome = Judged::skipped;
    check.why = reason;
  } else if (!hazard.agrees) {
    check.outcome = Judged::failed;
    check.why = fmt::format("{}, but {} is declared: {}", hazard.observed, hazard.expected, reason);
  }
  return check;
}

Check check_of(const Run& run, const Result& result) {
  Check check{fmt::format("{} (repetition {})", name_of(run, result), run.repetition), "exclusion"};
  const Audit& audit = run.audit;
  if (audit.verdict == Verdict::violated) {
    check.outcome = Judged::failed;
    check.why = fmt::format("{} lost updates, {} overlaps in {} contended grants",
                            audit.lost_updates, audit.overlaps, audit.contended_grants);
  } else if (audit.verdict == Verdict::unaudited || audit.verdict == Verdict::untested) {
    const bool nothing_to_exclude =
        run.load.clients == 1 || (run.sections > 0 && run.shared_sections == run.sections);
    check.outcome = nothing_to_exclude ? Judged::skipped : Judged::undecided;
    check.why = fmt::format("{}: {} accepted writes, {} contended grants", to_string(audit.verdict),
                            audit.increments, audit.contended_grants);
  }
  return check;
}

}  // namespace

std::vector<Check> checks_of(const Result& result) {
  std::vector<Check> checks;
  for (const Run& run : result.runs) checks.push_back(check_of(run, result));
  if (result.hazards) {
    for (const Hazard& hazard : *result.hazards) checks.push_back(check_of(hazard));
  }
  for (const Skipped& one : result.skipped) {
    const bool failed = one.reason.starts_with(kDidNotStart);
    checks.push_back({one.strategy, failed ? "start" : "skipped",
                      failed ? Judged::undecided : Judged::skipped, one.reason});
  }
  return checks;
}

std::vector<Check> checks_of(const ResultComparison& comparison, bool strict) {
  std::vector<Check> checks;
  for (const Gate& gate : comparison.gates) {
    using enum Gate::Outcome;
    Check& check = checks.emplace_back(Check{gate.strategy, gate.bound.text});
    if (check.group.empty()) check.group = "compare";
    check.why = why_not_kept(gate, comparison);
    if (!gate.undecided.empty()) {
      check.outcome = Judged::undecided;
    } else if (gate.outcome != kept && (gate.outcome != not_excluded || strict)) {
      check.outcome = Judged::failed;
    }
  }
  for (const std::string* why : {&comparison.undecided, &comparison.gates_undecided}) {
    if (!why->empty()) checks.push_back({"compare", "repetitions", Judged::undecided, *why});
  }
  return checks;
}

std::string to_junit(std::string_view suite, const std::vector<Check>& checks) {
  const auto count = [&](Judged outcome) {
    return std::ranges::count(checks, outcome, &Check::outcome);
  };
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
      xml_text(suite), checks.size(), count(Judged::failed), count(Judged::undecided),
      count(Judged::skipped));
  for (const Check& check : checks) {
    out += fmt::format("<testcase classname=\"{}\" name=\"{}\"", xml_text(check.group),
                       xml_text(check.name));
    const std::string_view element = kElements.at(static_cast<std::size_t>(check.outcome));
    out += element.empty()
               ? "/>\n"
               : fmt::format("><{} message=\"{}\"/></testcase>\n", element, xml_text(check.why));
  }
  return out + "</testsuite>\n</testsuites>\n";
}

}  // namespace lockbench::results
