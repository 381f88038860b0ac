#include "watch/families.h"

#include <gmock/gmock.h>

namespace lockbench::watch {
namespace {

using testing::HasSubstr;

Families named(const std::string& expression) {
  auto families = Families::parse(expression);
  EXPECT_TRUE(families) << families.error();
  return families.value_or(Families());
}

std::string refusal(const std::string& expression) {
  const auto families = Families::parse(expression);
  return families ? "accepted" : families.error();
}

TEST(Families, TheNamedGroupIsTheFamily) {
  const Families families = named("lock:(?<family>[a-z]+):.*");
  EXPECT_EQ(families.family_of("lock:order:1"), "order");
  EXPECT_EQ(families.family_of("lock:user:x"), "user");
  EXPECT_EQ(families.family_of("lock:order"), "other");
  EXPECT_EQ(families.family_of("a lock:order:1"), "other");
  EXPECT_EQ(named("(a|b):(?:x|y):([(]*)(?<family>[a-z]+)(.*)").family_of("a:x:((order1"), "order");
}

TEST(Families, BytesThatAreNoTextAreNotInAName) {
  EXPECT_EQ(named("(?<family>[^:]+):.*").family_of("a\xff\n:1"), "a  ");
  EXPECT_EQ(named("(?<family>.).*").family_of("ä"), " ") << "a part of a letter is none";
  EXPECT_EQ(Families().family_of("a\xff:1"), "a ");
  EXPECT_EQ(Families({"a\xff*"}).family_of("a\xff:1"), "a *");
}

TEST(Families, AnExpressionWithoutTheGroupIsRefusedByName) {
  EXPECT_THAT(refusal("lock:([a-z]+)"), HasSubstr("\"lock:([a-z]+)\" has no group (?<family>"));
  EXPECT_THAT(refusal("(?<family>[a-z]+"), HasSubstr("is no expression"));
  EXPECT_THAT(refusal(std::string(300, 'a') + "(?<family>a)"), HasSubstr("longer than 256"));
}

TEST(Families, ExpressionsThatOthersTakeExponentialTimeForAreQuick) {
  // Exponential backtracking must end.
  const Families families = named("(?<family>(a+)+)b");
  EXPECT_EQ(families.family_of(std::string(Families::kLongestName, 'a')), "other");
}

TEST(Families, WithoutExpressionTheGlobThatMatchesFirstIsTheFamily) {
  const Families families({"lock:order:*", "lock:*"});
  EXPECT_EQ(families.family_of("lock:order:1"), "lock:order:*");
  EXPECT_EQ(families.family_of("lock:user:1"), "lock:*");
  EXPECT_EQ(families.family_of("job"), "other");
}

TEST(Families, OfAPatternThatSaysNothingAreTheBeginningsOfNames) {
  const Families families({"lock:order:*", "*lock*"});
  EXPECT_EQ(families.family_of("lock:order:1"), "lock:order:*");
  EXPECT_EQ(families.family_of("lock:user:1"), "lock:user");
  EXPECT_EQ(families.family_of("job:lock:17"), "job:lock");
}

TEST(Families, WithoutAnythingItIsWhatTheNameStartsWith) {
  const Families families;
  EXPECT_EQ(families.family_of("lock:order:1234:eu"), "lock:order");
  EXPECT_EQ(families.family_of("lock:order:{99}"), "lock:order");
  EXPECT_EQ(families.family_of("lock:user:alice"), "lock:user");
  EXPECT_EQ(families.family_of("/locks/orders"), "/locks");
  EXPECT_EQ(families.family_of("lock:nightly-report"), "lock");
  EXPECT_EQ(families.family_of("nightly-report"), "nightly-report");
  EXPECT_EQ(families.family_of("lock-7"), "lock");
  EXPECT_EQ(families.family_of("lock:550e8400-e29b-41d4-a716-446655440000"), "lock");
  EXPECT_EQ(families.family_of("42"), "other");
  EXPECT_EQ(families.family_of(""), "other");
  EXPECT_EQ(families.family_of(":::"), "other");
  EXPECT_EQ(families.family_of(std::string(600, 'a')), "other");
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_matches("lock:*", "lock:1"));
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("**", ""));
  EXPECT_TRUE(glob_matches("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(glob_matches("l?ck", "lock"));
  EXPECT_FALSE(glob_matches("l?ck", "lck"));
  EXPECT_FALSE(glob_matches("lock:*", "lock"));
  EXPECT_FALSE(glob_matches("a*b", "acbc"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_TRUE(glob_matches("", ""));
}

}  // namespace
}  // namespace lockbench::watch
