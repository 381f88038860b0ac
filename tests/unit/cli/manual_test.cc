#include <fstream>
#include <iterator>

#include "tests/support/temporary_folder.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
