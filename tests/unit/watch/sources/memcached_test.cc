#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/sources/memcached_book.h"

namespace lockbench::watch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kGlancedAt{milliseconds(1'000'300)};

std::optional<memcached::Glance> item(std::int64_t left, const char* owner = "me") {
  return memcached::Glance{.value = owner, .seconds_left = left};
}

TEST(MemcachedBook, OnlyTheFirstLookAtAKeyFindsWhatMayHaveBegunEarlier) {
  MemcachedBook book;
  EXPECT_TRUE(book.looked("a", item(9), kGlancedAt, kGlancedAt).first_look);
  EXPECT_TRUE(book.looked("b", std::nullopt, kGlancedAt, kGlancedAt).first_look);
  for (const char* key : {"a", "b"}) {
    EXPECT_FALSE(book.looked(key, item(9, "other"), kGlancedAt, kGlancedAt).first_look) << key;
  }
}

/// The server counts whole seconds: an item that it is to keep for 10 s ends with one of them.
TEST(MemcachedBook, WhatMemcachedRoundsIsNoRenewal) {
  MemcachedBook book;
  const TimePoint end(seconds(1010));
  TimePoint told = TimePoint::max();
  Duration took = milliseconds(200);  // the first look is slow
  for (TimePoint at = kGlancedAt; at + took < end; at += milliseconds(25)) {
    const TimePoint looked_at = at + took;
    const std::int64_t left = (end - std::chrono::floor<seconds>(looked_at)) / seconds(1);
    const Sighting seen = book.looked("a", item(left), at, looked_at);
    ASSERT_TRUE(seen.ttl_left);
    EXPECT_LE(seen.at + *seen.ttl_left, told) << "later would be a renewal";
    told = seen.at + *seen.ttl_left;
    took = milliseconds(1);
  }
  EXPECT_GE(told, end);
  EXPECT_LE(told, end + milliseconds(50));
  const TimePoint late = end - milliseconds(10);
  const Sighting renewed = book.looked("a", item(10), late, late);
  EXPECT_EQ(renewed.ttl_left, seconds(10));
}

TEST(MemcachedBook, TheEndOfOneHoldingIsNotThatOfTheNext) {
  MemcachedBook book;
  book.looked("a", item(3), kGlancedAt, kGlancedAt);
  book.looked("a", std::nullopt, kGlancedAt + seconds(1), kGlancedAt + seconds(1));
  const TimePoint again = kGlancedAt + milliseconds(2900);
  EXPECT_EQ(book.looked("a", item(1), again, again).ttl_left, seconds(1));
}

}  // namespace
}  // namespace lockbench::watch
