#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/machine/under.h"
#include "tests/integration/support/documents.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const Words run_words = short_run({"none", "local-mutex"});

Words saved_in(const std::string& path) {
  Words words = run_words;
  words.insert(words.end(), {"--out", path});
  return words;
}

/// The only file below `folder` with this ending.
fs::path file_with(const fs::path& folder, std::string_view ending) {
  fs::path found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) found = entry.path();
  }
  return found;
}

class Disk : public testing::Test {
 protected:
  Disk() { fs::create_directory(scratch_ / "disk"); }

  const Scratch scratch_;
};

TEST_F(Disk, ThatIsReadOnlyIsNoHindranceWithoutAWish) {
  const Outcome outcome = run(
      scratch_, under_mounts("mount -t tmpfs -o ro none disk; cd disk; exec \"$@\"", run_words));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "results/runs cannot be written to here");
  EXPECT_EQ(read_result(file_with(scratch_.path(), ".json")).at("runs").size(), 2U);
}

TEST_F(Disk, WithoutATemporaryFolderServesWhatNeedsNone) {
  const Setting nowhere{.environment = {{"TMPDIR", scratch_ / "nowhere"}}};
  const Outcome fine = lockbench(scratch_, saved_in("r.json"), nowhere);
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_EQ(read_result(scratch_ / "r.json").at("runs").size(), 2U);
  const Outcome unable =
      lockbench(scratch_, short_run({"redis-set-nx", "--out", "s.json"}), nowhere);
  EXPECT_EQ(unable.code, 1) << unable.err;
  expect_in(unable.err, "nowhere: No such file or directory");
}

TEST_F(Disk, LimitOnTheSizeOfFilesIsAnError) {
  const Outcome outcome =
      run(scratch_, under({"/usr/bin/prlimit", "--fsize=1000"}, saved_in("r.json")));
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_in(outcome.err, "File too large");
  expect_in(outcome.out, "local-mutex");
  EXPECT_EQ(scratch_.files(), Words{}) << "nor half a file";
}

struct Closed {
  const char* line;
  int code;
};

class ClosedStream : public testing::TestWithParam<Closed> {};

/// Whatever is opened first must not take its place: a socket or a file would get the table.
TEST_P(ClosedStream, GetsIntoNothingElse) {
  const Scratch scratch;
  const Outcome outcome = run(scratch, under_shell(GetParam().line, saved_in("r.json")));
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, GetParam().code) << outcome.err;
  EXPECT_EQ(read_result(scratch / "r.json").at("runs").size(), 2U);
  if (GetParam().code != 0) expect_in(outcome.err, "could not be written to stdout");
}

INSTANTIATE_TEST_SUITE_P(Of, ClosedStream,
                         testing::Values(Closed{R"(exec "$@" >&-)", 2}, Closed{R"("$@" | true)", 2},
                                         Closed{R"(exec "$@" 2>&-)", 0},
                                         Closed{R"(exec "$@" <&-)", 0}),
                         [](const auto& tested) { return std::to_string(tested.index); });

}  // namespace
}  // namespace lockbench::test
