#include "strategies/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace lockbench {
namespace {

TEST(ParseNumber, TakesWhatIsANumberAsAWhole) {
  EXPECT_EQ(parse_number<std::uint64_t>("0"), 0U);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), 18'446'744'073'709'551'615U);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1x", "18446744073709551616", "seven"}) {
    EXPECT_FALSE(parse_number<std::uint64_t>(text)) << text;
  }
}

TEST(ParseNumber, TakesWhatTheTypeHolds) {
  EXPECT_EQ(parse_number<std::int64_t>("-1"), -1);
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_FALSE(parse_number<std::uint16_t>("65536"));
}

}  // namespace
}  // namespace lockbench
