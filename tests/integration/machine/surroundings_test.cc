#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbed/process/clock_page.h"
#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

constexpr uid_t kStranger = 64123;

/// lockbench with these arguments, run by a program that changes its environment, such as prlimit.
struct Wrapped {
  std::vector<std::string> arguments;
  Setting setting;
};
Wrapped under(std::vector<std::string> wrapper, const std::vector<std::string>& arguments) {
  Wrapped wrapped;
  wrapped.setting.program = wrapper.front();
  wrapped.arguments.assign(wrapper.begin() + 1, wrapper.end());
  wrapped.arguments.push_back(std::filesystem::path(LOCKBENCH_BINARY_DIR) / "lockbench");
  wrapped.arguments.insert(wrapped.arguments.end(), arguments.begin(), arguments.end());
  return wrapped;
}

/// Run by a shell line, in which "$@" is lockbench with its arguments.
Wrapped under_shell(const std::string& line, const std::vector<std::string>& arguments) {
  return under({"/bin/bash", "-o", "pipefail", "-c", line, "bash"}, arguments);
}

/// Likewise, in a mount namespace.
Wrapped under_mounts(const std::string& line, const std::vector<std::string>& arguments) {
  std::vector<std::string> wrapper{"/usr/bin/unshare", "--mount"};
  if (geteuid() != 0) wrapper.emplace_back("--map-root-user");
  for (const char* word : {"/bin/bash", "-e", "-c"}) wrapper.emplace_back(word);
  wrapper.push_back(line);
  wrapper.emplace_back("bash");
  return under(wrapper, arguments);
}

/// If this is root, runs as another user without a name or processes. Gives the scratch folder to
/// that user.
std::vector<std::string> as_stranger(const Scratch& scratch) {
  if (geteuid() != 0) return {"/usr/bin/env"};
  if (chown(scratch.path().c_str(), kStranger, kStranger) != 0) {
    throw std::runtime_error("cannot give away " + scratch.path().string());
  }
  const std::string id = std::to_string(kStranger);
  // It may enter root's home, where the program may be.
  return {"/usr/bin/setpriv",
          "--reuid=" + id,
          "--regid=" + id,
          "--clear-groups",
          "--inh-caps=+dac_read_search",
          "--ambient-caps=+dac_read_search"};
}

Outcome run(const Scratch& scratch, const Wrapped& wrapped) {
  return lockbench(scratch, wrapped.arguments, wrapped.setting);
}

using Words = std::vector<std::string>;

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

TEST(Surroundings, WithoutHomeNameOrTerminalAreEnough) {
  const Scratch scratch;
  Words wrapper = as_stranger(scratch);
  wrapper.insert(wrapper.end(), {"/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LANG=C",
                                 "TMPDIR=" + scratch.path().string()});
  const Outcome outcome =
      run(scratch, under(wrapper, short_run({"redis-set-nx", "local-mutex", "--out", "r.json"})));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(is_ascii(outcome.out)) << outcome.out;
  EXPECT_TRUE(is_ascii(outcome.err)) << outcome.err;
  EXPECT_EQ(read_result(scratch / "r.json").at("runs").size(), 2U);
}

TEST(Clock, ThatIsSetBackMarksTheRunAndChangesNoTimes) {
  const Scratch scratch;
  // The program reads the offset of its wall clock there.
  testbed::ClockPage page;
  const std::string path = scratch.write("clock", std::string(sizeof page, '\0'));
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  Program program(scratch,
                  {"run", "local-mutex", "--duration", "1s", "--warmup", "0ms", "--hold", "1ms",
                   "--strict", "--out", "r.json"},
                  {.environment = {{"LD_PRELOAD", LOCKBENCH_BINARY_DIR "/lockbench-clock-shim.so"},
                                   {"LOCKBENCH_CLOCK_FILE", path}}});
  EXPECT_TRUE(eventually([&] {
    page.ahead -= std::chrono::nanoseconds(std::chrono::hours(1)).count();
    EXPECT_EQ(pwrite(file, &page, sizeof page, 0), ssize_t{sizeof page});
    return std::filesystem::exists(scratch / "r.json");
  }));
  close(file);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& one = run_of(result, "local-mutex");
  EXPECT_FALSE(one.at("generator").at("valid"));
  expect_in(one.at("generator").at("reasons").dump(), "clock");
  constexpr int kAnHour = 3600;
  EXPECT_GE(one.at("duration_seconds"), 1);
  EXPECT_LT(one.at("duration_seconds"), kAnHour);
  EXPECT_GE(one.at("acquire").at("min"), 0);
  EXPECT_LT(one.at("acquire").at("max"), kAnHour);
  EXPECT_TRUE(kept_exclusion(one));
}

namespace fs = std::filesystem;

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

struct Closed {
  const char* line;
  int code;
};

class ClosedStream : public testing::TestWithParam<Closed> {};

/// The next opened descriptor must not take its place: a socket or file would receive the table.
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

/// Expects that it ended by itself with a reason.
void expect_orderly(const Outcome& outcome) {
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << outcome.code << ": " << outcome.err;
  EXPECT_TRUE(has(outcome.err, "lockbench: ") || has(outcome.err, "did not start: "))
      << outcome.err;
}

TEST(Descriptors, ThatAreTooFewForTheClientsAreAnError) {
  const Scratch scratch;
  const Outcome outcome =
      run(scratch,
          under({"/usr/bin/prlimit", "--nofile=64:64"},
                short_run({"redis-set-nx", "--clients", "200", "--redis", shared_redis().url()})));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  expect_in(outcome.err, "open files are needed, the limit is 64");
}

/// The limit counts all threads of a user, and does not apply to root.
class Threads : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become a user without other processes";
  }

  Outcome with_at_most(int threads, const Words& arguments) {
    Words wrapper = as_stranger(scratch_);
    wrapper.insert(wrapper.end(), {"/usr/bin/prlimit", fmt::format("--nproc={}", threads)});
    return run(scratch_, under(wrapper, arguments));
  }

  const Scratch scratch_;
};

TEST_F(Threads, ThatAreTooFewForTheClientsAreAnErrorAndNoKeyStays) {
  const auto server = own_redis();
  const Outcome outcome = with_at_most(
      20, {"run", "redis-fenced", "--redis", server->url(), "--clients", "100", "--threads", "100",
           "--duration", "20s", "--resource", "redis-fenced", "--out", "r.json"});
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_in(outcome.err, "a thread cannot be started");
  EXPECT_EQ(RedisProbe(server->port()).keys(), Words{});
}

TEST(Memory, ThatIsTooLittleIsAnError) {
  const Scratch scratch;
  const Outcome outcome = run(
      scratch, under({"/usr/bin/prlimit", "--as=80000000"},
                     {"run", "none", "--keys", "10000000", "--duration", "5s", "--out", "r.json"}));
  expect_orderly(outcome);
  expect_in(outcome.err, "not enough memory");
}

}  // namespace

}  // namespace lockbench::test
