#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/console/publish.h"
#include "results/file/load.h"
#include "tests/integration/support/program.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"
#include "tests/unit/results/samples.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace lockbench::cli
