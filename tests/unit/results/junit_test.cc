#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "results/tables/show.h"
#include "tests/support/output_of.h"
#include "tests/support/temporary_folder.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;
using Judged = Check::Outcome;

/// What Python's parser reads of it: a line for each element with its attributes.
std::string parsed_by_python(const std::string& xml) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "junit.xml").string();
  std::ofstream(file, std::ios::binary) << xml;
  const test::Output read = test::output_of(
      "python3 -c 'import sys, xml.etree.ElementTree as tree\n"
      "for one in tree.parse(sys.argv[1]).iter(): print(one.tag, ascii(one.attrib))' " +
      file + " 2>&1");
  EXPECT_EQ(read.status, 0) << read.text;
  return read.text;
}

TEST(JUnit, IsXmlWhateverTheTextsHold) {
  const std::string hostile = "<a b=\"c\">&amp;'\x01\x1b[31m\x7f\xff\xEF\xBF\xBF]]>\n\u00b5s";
  const std::string read = parsed_by_python(
      to_junit("suite", {{"one", hostile}, {hostile, "two", Judged::failed, hostile}}));
  EXPECT_THAT(read, HasSubstr("<a b=\"c\">&amp;"));
  EXPECT_THAT(read, HasSubstr("]]> \\xb5s"));
}

TEST(JUnit, CountsItsElements) {
  const std::string read =
      parsed_by_python(to_junit("suite", {{"a", "kept"},
                                          {"a", "missed", Judged::failed, "5"},
                                          {"b", "open", Judged::undecided, "?"},
                                          {"c", "none", Judged::skipped, "-"},
                                          {"c", "more", Judged::skipped}}));
  EXPECT_THAT(read, HasSubstr("testsuite {'name': 'suite', 'tests': '5', 'failures': '1', "
                              "'errors': '1', 'skipped': '2'}\n"));
  EXPECT_THAT(read, HasSubstr("testcase {'classname': 'a', 'name': 'missed'}\n"
                              "failure {'message': '5'}\n"));
  EXPECT_THAT(read, HasSubstr("error {'message': '?'}\n"));
}

TEST(JUnit, JudgesAuditsAndPlays) {
  Result result;
  result.runs.resize(3);
  result.runs[0].audit.verdict = Verdict::violated;
  result.runs[1].audit.verdict = Verdict::unprotected;
  const auto play = [](const char* expected, const char* observed) {
    return Hazard{.scenario = "fault",
                  .strategy = "lock",
                  .expected = expected,
                  .observed = observed,
                  .agrees = std::string_view(expected) == observed};
  };
  result.hazards = {play("lost-update", "lost-update"), play("safe", "double-grant"),
                    play("not-played", "not-played")};
  std::vector<Judged> outcomes;
  for (const Check& check : checks_of(result)) outcomes.push_back(check.outcome);
  EXPECT_THAT(outcomes, testing::ElementsAre(Judged::failed, Judged::passed, Judged::passed,
                                             Judged::passed, Judged::failed, Judged::skipped));
}

TEST(JUnit, WhatWasNotTestedIsNoSuccess) {
  Result result;
  result.runs.resize(4);
  for (results::Run& run : result.runs) run.load.clients = 8;
  result.runs[0].audit = {.contended_grants = 3, .verdict = Verdict::untested};
  result.runs[1].audit.verdict = Verdict::unaudited;
  result.runs[2].audit.verdict = Verdict::untested;
  result.runs[2].load.clients = 1;
  result.runs[3].audit.verdict = Verdict::unaudited;
  result.runs[3].sections = result.runs[3].shared_sections = 9;
  result.skipped = {{"lost", "did not start: refused"}, {"absent", "not built"}};
  const std::vector<Check> checks = checks_of(result);
  std::vector<Judged> outcomes;
  std::ranges::transform(checks, std::back_inserter(outcomes), &Check::outcome);
  EXPECT_THAT(outcomes, testing::ElementsAre(Judged::undecided, Judged::undecided, Judged::skipped,
                                             Judged::skipped, Judged::undecided, Judged::skipped))
      << "a single client, and readers alone, have nothing to exclude";
  EXPECT_EQ(checks[0].why, "untested: 0 accepted writes, 3 contended grants");
  EXPECT_EQ(checks[4].why, "did not start: refused");
}

}  // namespace
}  // namespace lockbench::results
