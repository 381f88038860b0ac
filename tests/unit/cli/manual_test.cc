#include <fstream>
#include <iterator>

#include "hazards/scenario.h"
#include "strategies/registry.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

/// The words without what they mean.
std::vector<std::string> completed(std::vector<std::string> words) {
  words.insert(words.begin(), "complete");
  const Ran all = ran(words);
  EXPECT_EQ(all.code, 0);
  std::vector<std::string> candidates;
  std::istringstream lines(all.out);
  for (std::string line; std::getline(lines, line);) {
    candidates.push_back(line.substr(0, line.find('\t')));
  }
  return candidates;
}

template <class T>
std::vector<std::string> names_of_all(const std::vector<const T*>& all) {
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const T* one : all) texts.emplace_back(one->name);
  return texts;
}

TEST(Completion, NamesAreThoseOfTheCatalogues) {
  EXPECT_EQ(completed({"run", ""}), names_of_all(all_strategies()));
  EXPECT_EQ(completed({"doctor", "--strategies", ""}), names_of_all(all_strategies()));
  EXPECT_EQ(completed({"hazards", ""}), names_of_all(hazards::all_scenarios()));
  EXPECT_THAT(completed({"choose", "--stores", "re"}), ElementsAre("redis"));
}

TEST(Completion, OptionsAreTheCommands) {
  const auto options = completed({"run", "redis-queue", "-"});
  EXPECT_THAT(options, IsSupersetOf({"--clients", "--config", "--help"}));
  EXPECT_EQ(options.size(), run_options().all().size());  // one is positional, and there is --help
  EXPECT_THAT(completed({"show", "--client"}), IsEmpty());
  EXPECT_THAT(completed({"--al"}), ElementsAre("--all")) << "of the command that runs without one";
}

TEST(Completion, AValueMayFollowAnEqualsSignOrAComma) {
  EXPECT_THAT(completed({"run", "--format=c"}), ElementsAre("--format=csv"));
  EXPECT_THAT(completed({"run", "--format", "=", "c"}), ElementsAre("csv"));
  EXPECT_THAT(completed({"run", "--format", "="}),
              ElementsAre("table", "json", "csv", "markdown", "junit"));
  EXPECT_THAT(completed({"run", "--load", "alone,sat"}), ElementsAre("alone,saturated"));
}

TEST(Completion, FilesAreLeftToTheShell) {
  EXPECT_THAT(completed({"show", ""}), ElementsAre("/"));
  EXPECT_THAT(completed({"run", "--out", "res"}), ElementsAre("/"));
}

TEST(Completion, NothingIsOfferedWhereNothingIsKnown) {
  EXPECT_THAT(completed({"run", "--clients", ""}), IsEmpty());
  EXPECT_THAT(completed({"run", "--redis", ""}), IsEmpty());
  EXPECT_THAT(completed({"walk", ""}), IsEmpty());
}

TEST(Manual, HasEveryOptionOfACommandUnderItsHeading) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(ran({"manual", folder.path().string()}).code, 0);
  std::ifstream file(folder.path() / "lockbench-run.1");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const OptionList options = run_options();
  for (const Option& option : options.all()) {
    if (option.positional) continue;
    std::string entry = "\n.TP\n\\fB\\-\\-";
    for (const char c : option.name) entry += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_THAT(page, HasSubstr(entry + "\\fR"));
    EXPECT_THAT(page, HasSubstr("\n.SS " + option.group + "\n"));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("\n.SS Arguments\n.TP\n\\fISTRATEGY\\fR\n"),
                          HasSubstr("(default: all)\n")));
}

TEST(Manual, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(ran({"manual", "/nowhere"}).err, HasSubstr("cannot write /nowhere/lockbench.1"));
}

}  // namespace
}  // namespace lockbench::cli
