#include "cli/console/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/file/load.h"
#include "tests/integration/support/program.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"
#include "tests/unit/results/samples.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ResultFileTest : public testing::Test {
 protected:
  /// What it says on stderr, and prints on stdout.
  template <class Use>
  std::pair<std::string, std::string> outputs(const std::string& path, const Use& use) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    {
      Console console(stderr, false, false);
      ResultFile file(path, console);
      use(file);
    }
    return {testing::internal::GetCapturedStderr(), testing::internal::GetCapturedStdout()};
  }

  test::Scratch scratch_;
  results::Result result_ = results::minimal_result();
};

TEST_F(ResultFileTest, IsThereAfterEachStepAndSaysSoAtTheEnd) {
  const std::string path = scratch_ / "r.json";
  result_.interrupted = true;
  const auto [during, nothing] = outputs(path, [&](ResultFile& file) {
    file.keep(result_);
    EXPECT_TRUE(results::load(path)->interrupted);
  });
  EXPECT_EQ(during, "");
  result_.interrupted = false;
  const auto [at_end, printed] =
      outputs(path, [&](ResultFile& file) { EXPECT_TRUE(file.save(result_)); });
  EXPECT_EQ(at_end, "saved in " + path + "\n");
  EXPECT_FALSE(results::load(path)->interrupted);
  EXPECT_EQ(nothing + printed, "");
}

TEST_F(ResultFileTest, AFullDiskIsSaidOnceAndDecidesAtTheEnd) {
  const test::Variable folder("TMPDIR", scratch_.path());
  const auto [said, printed] = outputs("/dev/full", [&](ResultFile& file) {
    for (int step = 0; step < 3; ++step) file.keep(result_);
    EXPECT_FALSE(file.save(result_));
  });
  EXPECT_EQ(said.find("not saved so far: "), said.rfind("not saved so far: "));
  EXPECT_THAT(said, HasSubstr("not saved so far: cannot write /dev/full"));
}

TEST_F(ResultFileTest, StdoutGetsItOnce) {
  const auto [said, printed] = outputs(std::string(kStdout), [&](ResultFile& file) {
    file.keep(result_);
    file.keep(result_);
    EXPECT_TRUE(file.save(result_));
  });
  EXPECT_EQ(printed, results::to_json(result_));
  EXPECT_EQ(said, "");
}

TEST_F(ResultFileTest, RunsOfVersion1AreNotWrittenAsThoseOfVersion2) {
  const auto of_version_1 = [&](const std::string& name, const results::Result& result) {
    std::string text = results::to_json(result);
    const std::string version = "lockbench.result/2";
    text.replace(text.find(version), version.size(), "lockbench.result/1");
    return scratch_.write(name, text);
  };
  const std::string none = of_version_1("none.json", result_);
  result_.runs = {results::simple_run("none")};
  const std::string some = of_version_1("some.json", result_);
  const std::vector<std::string> shown{"show", some, "--format", "json"};
  for (const auto& args : {shown, std::vector<std::string>{"condense", some}}) {
    const Ran refused = ran(args);
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, StartsWith("lockbench: "));
    EXPECT_THAT(refused.err, HasSubstr("some.json: a file of version 1, whose figures mean "
                                       "something else than those of version 2: measure again"));
  }
  EXPECT_EQ(ran({"show", some}).code, 0);
  EXPECT_EQ(ran({"show", some, "--format", "csv"}).code, 0);
  EXPECT_EQ(ran({"show", none, "--format", "json"}).code, 0) << "it has no runs";
}

}  // namespace
}  // namespace lockbench::cli
