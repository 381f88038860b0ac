#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// A redis-server that leaves a file behind when it is started, by whatever account.
std::string with_tell_tale_server(const Scratch& scratch) {
  const std::string path = scratch.write("redis-server", "#!/bin/sh\n: > \"$0.was-started\"\n");
  for (const auto& one : {std::filesystem::path(path), scratch.path()}) {
    std::filesystem::permissions(one, std::filesystem::perms::all);
  }
  return scratch.path().string() + ":/usr/bin:/bin";
}

/// What they say is for the unit tests.
TEST(UsageErrors, ComeBeforeAnythingIsStartedOrWritten) {
  // The last one proves that a server that was started would have been seen.
  for (const auto& [arguments, starts] :
       std::vector<std::pair<Words, bool>>{{{"run", "redis-set-nx", "--duration", "5"}, false},
                                           {{"run", "redis-set-nx", "--out", "."}, false},
                                           {{"run", "redis-set-nx"}, true}}) {
    const Scratch scratch;
    const std::string path = with_tell_tale_server(scratch);
    const Outcome outcome = lockbench(scratch, arguments, {.environment = {{"PATH", path}}});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    const Words files = scratch.files();
    const auto was_started = std::count(files.begin(), files.end(), "redis-server.was-started");
    EXPECT_EQ(was_started, starts ? 1 : 0) << outcome.err;
    if (starts) {
      expect_in(outcome.err, "redis-set-nx cannot run here");
    } else {
      EXPECT_EQ(files, Words{"redis-server"});
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
    }
  }
}

}  // namespace
}  // namespace lockbench::test
