#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "strategies/duration.h"
#include "strategies/number.h"
#include "strategies/random.h"
#include "strategies/store.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("250us"), 250us);
  EXPECT_EQ(parse_duration("10ms"), 10ms);
  EXPECT_EQ(parse_duration("2s"), 2s);
  EXPECT_EQ(parse_duration("3m"), 3min);
  EXPECT_EQ(parse_duration("4h"), 4h);
  // Fractions to the nearest nanosecond.
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0.1s"), 100ms);
  EXPECT_EQ(parse_duration("1e3us"), 1ms);
  EXPECT_EQ(parse_duration("0.6ns"), 1ns);
  EXPECT_EQ(parse_duration("0.4ns"), 0ns);
  EXPECT_EQ(parse_duration("0"), 0ns);  // needs no unit
  EXPECT_EQ(parse_duration("0s"), 0ns);
}

TEST(ParseDuration, RejectsOtherTextAndSaysWhatIsAllowed) {
  for (const char* text : {"", "ms", "5", "10 ms", " 10ms", "10ms ", "10Ms", "10sec", "-1s", "+1s",
                           "0x10s", "1,5s", "nan", "nans", "inf", "infs", "1..5s", "ten seconds"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().find('"' + std::string(text) + '"'), std::string::npos);
    EXPECT_NE(parsed.error().find("such as 250us"), std::string::npos);
  }
}

TEST(ParseDuration, RejectsDurationsThatOverflow) {
  EXPECT_TRUE(parse_duration("800000h"));  // 91 years
  for (const char* text : {"1000000h", "1e300s", "1e999s", "9223372036854775808ns"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(FormatDuration, IsTheShortestExactForm) {
  const std::pair<Duration, const char*> cases[] = {
      {0ns, "0s"},   {1ns, "1ns"}, {1500us, "1500us"}, {10ms, "10ms"}, {1000ms, "1s"},
      {90s, "90s"},  {120s, "2m"}, {90min, "90m"},     {24h, "24h"},   {1s + 1ns, "1000000001ns"},
      {-5ms, "-5ms"}};
  for (const auto& [duration, text] : cases) EXPECT_EQ(format_duration(duration), text);
}

TEST(FormatDuration, RoundTrips) {
  std::uint64_t bits = 1;
  for (int i = 0; i < 1000; ++i) {
    bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
    // From nanoseconds to weeks.
    const Duration duration(static_cast<Duration::rep>((bits >> 14) >> (i % 50)));
    EXPECT_EQ(parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
}

TEST(WholeUnits, AreRoundedUp) {
  EXPECT_EQ(ceil_milliseconds(0ns), 0);
  EXPECT_EQ(ceil_milliseconds(1ns), 1);
  EXPECT_EQ(ceil_milliseconds(1500us), 2);
  EXPECT_EQ(ceil_milliseconds(2ms), 2);
  EXPECT_EQ(ceil_seconds(1ms), 1);
  EXPECT_EQ(ceil_seconds(2s), 2);
  EXPECT_EQ(ceil_seconds(2s + 1ns), 3);
}

TEST(ParseNumber, TakesWhatIsANumberAsAWhole) {
  EXPECT_EQ(parse_number<std::uint64_t>("0"), 0U);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), 18'446'744'073'709'551'615U);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1x", "18446744073709551616", "seven"}) {
    EXPECT_FALSE(parse_number<std::uint64_t>(text)) << text;
  }
  EXPECT_EQ(parse_number<std::int64_t>("-1"), -1);
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_FALSE(parse_number<std::uint16_t>("65536"));
}

TEST(Random, IsTheSameEverywhere) {
  Random random(1);
  EXPECT_EQ(random(), 0x8e250e551a5200bc);
  EXPECT_EQ(random(), 0xe7976a548b46c55f);
  EXPECT_EQ(Random(1, 5)(), 0x15f73994f1e0e21a);
}

TEST(RunId, IsStrict) {
  for (const char* id : {"20261121T012530Z-4f3a9c", "20261121T012530Z-4f3a9c-0",
                         "20261121T012530Z-4f3a9c-123456789"}) {
    EXPECT_TRUE(is_run_id(id)) << id;
  }
  for (const char* other :
       {"", "*", "20261121T012530Z", "20261121T012530Z-4f3a9", "20261121T012530Z-4f3a9c*",
        "20261121T012530Z-4f3a9c:", "20261121T012530Z-4f3a9c-", "20261121T012530Z-4f3a9c-*",
        "20261121T012530Z-4f3a9c-1-2", "20261121T012530Z-4f3a9c-1234567890",
        "20261121T012530Z-4F3A9C", "2026112?T012530Z-4f3a9c", "20261121t012530z_4f3a9c",
        " 20261121T012530Z-4f3a9c", "20261121T012530Z-4f3a9c\n", "../20261121T012530Z-4f3a9c"}) {
    EXPECT_FALSE(is_run_id(other)) << other;
  }
}

TEST(RunId, OfAPartBelongsToItsRun) {
  EXPECT_TRUE(is_of_run("r", "r"));
  EXPECT_TRUE(is_of_run("r-12", "r"));
  EXPECT_TRUE(is_of_run("r-1", "r-1"));
  for (const char* other : {"", "r1", "r-", "r-x", "r-1x", "r:", "rr", "s"}) {
    EXPECT_FALSE(is_of_run(other, "r")) << other;
  }
  EXPECT_FALSE(is_of_run("r-12", "r-1"));
}

}  // namespace
}  // namespace lockbench
