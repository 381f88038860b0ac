#include "cli/console/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cli/console/console.h"
#include "cli/console/publish.h"
#include "strategies/number.h"
#include "strategies/registry.h"
#include "tests/integration/support/program.h"
#include "tests/support/eventually.h"
#include "tests/support/servers.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::ExitedWithCode;
using testing::SizeIs;

// In separate processes, as they block signals for good. The exit code is the outcome.

/// Ends the process if no stop comes.
void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, test::kPatience, [] { return false; });
  if (!stop.stop_requested()) std::_Exit(1);
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void stop_before_the_load() {
  Session session({.quiet = false}, false, "so be it");
  kill(getpid(), SIGTERM);
  wait_for_stop(session.stop());
  std::vector<Selected> selected = {{find_strategy("local-mutex"), true}};
  std::vector<results::Skipped> skipped;
  const auto deployed = session.deploy({}, selected, skipped);
  if (!session.stopped() || deployed) std::_Exit(1);
  std::_Exit(session.interrupted_early());
}

TEST_F(SessionTest, AStopBeforeTheLoadLeavesNothing) {
  EXPECT_EXIT(stop_before_the_load(), ExitedWithCode(105),
              "interrupted before the load began: nothing was measured");
}

void deploy_on_two_of_three() {
  const auto one = test::own_redis(), other = test::own_redis();
  LoadOptions options;
  options.servers["redis"] = {one->url(), other->url(),
                              fmt::format("redis://127.0.0.1:{}", test::closed_port())};
  Descriptor left_out = *find_strategy("local-mutex");
  left_out.name = "store-x";
  left_out.not_built = "built without libstore";
  std::vector<Selected> selected = {{find_strategy("redlock"), true}, {&left_out, false}};
  std::vector<results::Skipped> skipped;
  int code = 1;
  {
    Session session({.quiet = false}, false);
    const auto deployed = session.deploy(options, selected, skipped);
    if (deployed && selected.size() == 1 && skipped.size() == 1) code = 42;
  }
  std::_Exit(code);
}

TEST_F(SessionTest, SaysWhatIsMissingAndWhoWasSkipped) {
  EXPECT_EXIT(deploy_on_two_of_three(), ExitedWithCode(42),
              "warning: one of 3 nodes is missing: 127.0.0.1:[0-9]+.*\n"
              "skipped: store-x: built without libstore\n");
}

/// Debug and sanitizer builds must be.
TEST(Builds, AreWarnedOfWhenTheyMeasure) {
  const test::Scratch scratch;
  const test::Outcome outcome = test::lockbench(
      scratch, {"run", "local-mutex", "--duration", "10ms", "--warmup", "0ms", "--out", "r.json"});
  EXPECT_THAT(scratch.files(), SizeIs(1)) << outcome.err;
  const std::string type = build_facts().build_type;
  const bool measures = type == "Release" || type == "RelWithDebInfo";
  EXPECT_EQ(outcome.err.find("its figures are not to be trusted") == std::string::npos, measures)
      << outcome.err;
}

void stop_and_exit(int signal_number) {
  prepare_signals();
  Console console(stderr, false, false);
  const std::stop_source stop;
  {
    const StopOnSignal on_signal(stop, console);
    kill(getpid(), signal_number);
    wait_for_stop(stop.get_token());
  }
  std::_Exit(42);
}

void stop_twice_and_exit(int signal_number, std::FILE* stream) {
  prepare_signals();
  Console console(stream, false, false);
  const std::stop_source stop;
  const StopOnSignal on_signal(stop, console);
  kill(getpid(), signal_number);
  wait_for_stop(stop.get_token());
  kill(getpid(), signal_number);
  // The signal ends this, or else the alarm.
  alarm(test::kPatience.count());
  while (true) pause();
}

/// A full pipe that nobody reads: writing to it blocks.
std::FILE* stuck_stream() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::_Exit(2);
  if (fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) std::_Exit(2);
  const std::array<char, 4096> page{};
  while (write(ends[1], page.data(), page.size()) > 0) {
  }
  if (fcntl(ends[1], F_SETFL, 0) != 0) std::_Exit(2);
  return fdopen(ends[1], "w");
}

class StopOnSignalTest : public testing::TestWithParam<int> {
 protected:
  StopOnSignalTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(StopOnSignalTest, TheFirstStops) {
  EXPECT_EXIT(stop_and_exit(GetParam()), testing::ExitedWithCode(42),
              "stopping: saving what was measured");
}

TEST_P(StopOnSignalTest, TheSecondKills) {
  EXPECT_EXIT(stop_twice_and_exit(GetParam(), stderr), testing::KilledBySignal(GetParam()), "");
}

TEST_P(StopOnSignalTest, NeitherDependsOnTheConsole) {
  EXPECT_EXIT(stop_twice_and_exit(GetParam(), stuck_stream()), testing::KilledBySignal(GetParam()),
              "");
}

void leave(int /*number*/) { std::_Exit(43); }

void stop_twice_under_a_handler(int signal_number) {
  static_cast<void>(std::signal(signal_number, leave));
  stop_twice_and_exit(signal_number, stderr);
}

TEST_P(StopOnSignalTest, TheSecondReachesAHandler) {
  EXPECT_EXIT(stop_twice_under_a_handler(GetParam()), testing::ExitedWithCode(43), "");
}

INSTANTIATE_TEST_SUITE_P(All, StopOnSignalTest, testing::Values(SIGINT, SIGTERM, SIGHUP));

void hang_up_under_nohup() {
  static_cast<void>(std::signal(SIGHUP, SIG_IGN));
  prepare_signals();
  Console console(stderr, false, false);
  const std::stop_source stop;
  {
    const StopOnSignal on_signal(stop, console);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    wait_for_stop(stop.get_token());
    kill(getpid(), SIGHUP);
  }
  std::_Exit(42);
}

TEST(StopOnSignalUnderNohup, AHangUpNeitherStopsNorKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(hang_up_under_nohup(), testing::ExitedWithCode(42), "^stopping[^\n]*\n$");
}

/// A console's output for a note, a warning, a status line and a note above it.
std::string printed(const char* locale) {
  const test::Variable of_all("LC_ALL", locale);
  Written written;
  {
    Console console(written.stream(), true, false);
    console.note("acquire p99 12 µs");
    console.warn("±5 %");
    console.status("3 µs");
    console.note("done");
  }
  return written.text();
}

TEST(Console, IsAsciiUnlessTheLocaleIsUtf8) {
  EXPECT_EQ(printed("C"), "acquire p99 12 us\n+-5 %\n\r\x1b[K3 us\r\x1b[Kdone\n3 us\r\x1b[K");
  EXPECT_EQ(printed("C.UTF-8"), "acquire p99 12 µs\n±5 %\n\r\x1b[K3 µs\r\x1b[Kdone\n3 µs\r\x1b[K");
}

TEST(Console, KnowsEachSpellingOfUtf8) {
  for (const auto& [locale, is_utf8] :
       std::vector<std::pair<const char*, bool>>{{"en_US.UTF-8", true},
                                                 {"en_US.UTF8", true},
                                                 {"de_DE.utf8@euro", true},
                                                 {"C.Utf-8", true},
                                                 {"C", false},
                                                 {"de_DE.ISO-8859-1", false}}) {
    const test::Variable of_all("LC_ALL", locale);
    EXPECT_EQ(is_utf8_locale(), is_utf8) << locale;
  }
}

/// The status line that a console of 80 columns shows.
std::string status_in(const char* locale, const std::string& line) {
  const test::Variable of_all("LC_ALL", locale);
  Written written;
  Console console(written.stream(), true, false);
  console.status(line);
  return written.text().substr(std::string_view("\r\x1b[K").size());
}

TEST(Console, CutsAStatusBetweenCharacters) {
  std::string micros;
  for (int i = 0; i < 100; ++i) micros += "µ";
  EXPECT_EQ(status_in("C.UTF-8", micros), micros.substr(0, 2 * 78) + "…");
  EXPECT_EQ(status_in("C", micros), std::string(79, 'u'));
  EXPECT_EQ(status_in("C", std::string(78, 'x') + "……"), std::string(78, 'x') + ".");
}

TEST(Console, RemembersItsLatestLines) {
  Written written;
  Console console(written.stream(), false, false);
  for (const char* line : {"one", "two", "three"}) console.note(line);
  console.warn("not saved so far: disk full");
  EXPECT_THAT(console.latest(),
              testing::ElementsAre("two", "three", "not saved so far: disk full"));
}

using Json = nlohmann::json;

/// The events for a note, a warning and an event, even if the console is quiet.
std::vector<Json> events_in(const std::string& target, const std::string& file) {
  Written written;
  {
    auto events = Events::open(target);
    if (!events) throw std::runtime_error(events.error());
    if (const auto descriptor = parse_number<int>(target)) {
      EXPECT_EQ(fcntl(*descriptor, F_GETFD), FD_CLOEXEC) << "no server inherits it";
    }
    Console console(written.stream(), false, true, *std::move(events));
    console.note("100 %");
    console.warn("slow \"disk\"\n");
    console.event("saved", {{"file", "r.json"}, {"run", std::int64_t{2}}, {"done", 0.5}});
  }
  std::vector<Json> all;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  for (Json& event : all) {
    EXPECT_EQ(event.at("time").get<std::string>().size(), std::size("2026-01-01T12:00:00Z") - 1);
    event.erase("time");
  }
  return all;
}

TEST(Terminal, ThatTakesNothingHoldsNobodyUp) {
  int reader = -1, terminal = -1;
  ASSERT_EQ(openpty(&reader, &terminal, nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(tcflow(terminal, TCOOFF), 0);
  EXPECT_TRUE(write_to(terminal, "stopped by Ctrl-S"));
  ASSERT_EQ(tcflow(terminal, TCOON), 0);
  EXPECT_TRUE(write_to(terminal, std::string(1'000'000, 'x'))) << "nobody reads it";
  close(reader);
  EXPECT_FALSE(write_to(terminal, "gone"));
  close(terminal);
}

TEST(Events, AreLinesOfJsonInAFileOrADescriptor) {
  const TemporaryFile file("events", "");
  const std::vector<Json> expected{
      {{"event", "note"}, {"text", "100 %"}},
      {{"event", "warning"}, {"text", "slow \"disk\"\n"}},
      {{"event", "saved"}, {"file", "r.json"}, {"run", 2}, {"done", 0.5}}};
  EXPECT_EQ(events_in(file.path(), file.path()), expected);
  const TemporaryFile other("others", "");
  const int descriptor = open(other.path().c_str(), O_WRONLY);
  EXPECT_EQ(events_in(std::to_string(descriptor), other.path()), expected);
}

TEST(Events, ThatCannotBeWrittenAreSaidOnce) {
  for (const char* const target : {"2", "9999", "/nowhere/events"}) {
    const auto refused = Events::open(target);
    ASSERT_FALSE(refused) << target;
    EXPECT_THAT(refused.error(), testing::StartsWith(target));
  }
  Written written;
  Console console(written.stream(), false, true, Events::open("/dev/full").value());
  console.note("one");
  console.note("two");
  EXPECT_EQ(written.text(), "--events: can no longer be written\n");
}

}  // namespace
}  // namespace lockbench::cli
