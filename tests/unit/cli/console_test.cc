#include "cli/console/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "strategies/number.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

/// What a console prints for a note, a warning, a status line and a note above it.
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

using Json = nlohmann::json;

/// What came of a note, a warning and an event, also if the console is quiet.
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
  EXPECT_EQ(written.text(), "--events: cannot be written any more\n");
}

}  // namespace
}  // namespace lockbench::cli
