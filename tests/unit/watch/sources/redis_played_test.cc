#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <random>
#include <set>

#include "tests/unit/watch/sources/redis_replies.h"
#include "watch/ledger.h"

namespace lockbench::watch {
namespace {

/// An application that takes locks, and a watch of it with few looks, in steps of 1 ms. Changes of
/// a key in one step reach a tracking watch as one.
class Played {
 public:
  Played(RedisBook::Way way, int grants_per_second) : way_(way), book_(100'000, way) {
    ledger_.facts(
        {.store = "redis",
         .endpoint = "h",
         .accuracy = way == RedisBook::Way::tracking ? Accuracy::at_least : Accuracy::exact});
    book_.all_found();
    chance_ = std::bernoulli_distribution(grants_per_second / 4000.0);
  }

  /// Plays 20 s.
  void play() {
    for (int job = 0; job < 5; ++job) grant(fmt::format("lock:job:{}", job), 2000, 0);
    for (now_ = 0; now_ < 20'000; ++now_) {
      while (!due_.empty() && due_.top().first <= now_) {
        const std::string key = due_.top().second;
        due_.pop();
        end(key);
      }
      // A client that dies.
      if (now_ % 200 == 0) grant(fmt::format("lock:dead:{}", now_), 150, now_, 150);
      // A lock that is written over, and released by the thief.
      if (now_ % 1000 == 0) grant("lock:stolen:1", 500, now_);
      if (now_ % 1000 == 250) steal("lock:stolen:1");
      for (int i = 0; i < 4; ++i) {
        const std::string key = fmt::format("lock:order:{}", random_() % 1000);
        const bool wants = chance_(random_);
        if (wants && !held_.contains(key)) grant(key, 2 + static_cast<int>(hold_(random_)), now_);
      }
      for (auto& [key, held] : held_) {
        if (key.starts_with("lock:job") && now_ > held.since && (now_ - held.since) % 300 == 0) {
          held.renewed = now_;
          changed(key, KeyEvent::timed);
        }
      }
      for (const std::string& key : changed_) book_.changed(key, at(now_));
      changed_.clear();
      book_.expire(at(now_));
      watch();
    }
  }

  Picture picture() { return ledger_.read(at(now_)); }
  std::map<std::string, std::uint64_t> grants, releases, expiries, thefts;  // by family
  std::vector<int> holds;                                                   // of orders, in ms

 private:
  struct Held {
    std::string token;
    int since = 0, renewed = 0, ttl = 2500;
  };

  static std::string family_of(const std::string& key) { return key.substr(0, key.rfind(':')); }
  void grant(const std::string& key, int hold, int when, int ttl = 2500) {
    held_[key] = {std::to_string(++tokens_), when, when, ttl};
    due_.push({when + hold, key});
    ++grants[family_of(key)];
    changed(key, KeyEvent::written);
  }
  void steal(const std::string& key) {
    held_[key].token = std::to_string(++tokens_);
    ++grants[family_of(key)];
    ++thefts[family_of(key)];
    changed(key, KeyEvent::written);
  }
  void end(const std::string& key) {
    const auto held = held_.find(key);
    if (held == held_.end()) return grant(key, 2000, now_);
    const bool expires = now_ - held->second.renewed >= held->second.ttl;
    if (key.starts_with("lock:order")) holds.push_back(now_ - held->second.since);
    held_.erase(held);
    ++(expires ? expiries : releases)[family_of(key)];
    changed(key, expires ? KeyEvent::expired : KeyEvent::released);
    if (key.starts_with("lock:job")) due_.push({now_ + 2, key});
  }
  void changed(const std::string& key, KeyEvent event) {
    if (way_ == RedisBook::Way::tracking) {
      changed_.insert(key);
    } else {
      book_.changed(key, event, at(now_));
      report(book_.take_ready());
    }
  }
  /// 100 looks a second.
  void watch() {
    report(book_.take_ready());
    for (looks_ = std::min(looks_ + 0.1, 100.0); looks_ >= 1; --looks_) {
      const auto turn = book_.next(at(now_));
      if (!turn) break;
      const auto held = held_.find(turn->key);
      auto state = held == held_.end()
                       ? free_key(turn->key)
                       : held_by(held->second.token, held->second.renewed + held->second.ttl - now_,
                                 turn->key);
      report(book_.looked(turn->key, KeyKind::text, std::move(state), at(now_), at(now_)));
    }
    ledger_.missed("h", book_.take_missed(), "");
    ledger_.seen_until("h", book_.waits_since());
  }
  void report(std::vector<Sighting> sightings) {
    for (Sighting& one : sightings) ledger_.seen("h", std::move(one));
  }

  const RedisBook::Way way_;
  RedisBook book_;
  Ledger ledger_{{.salt = "1"}};
  std::mt19937 random_{7};  // NOLINT: the same each time
  std::exponential_distribution<> hold_{1.0 / 30};
  std::bernoulli_distribution chance_;
  int now_ = 0, tokens_ = 0;
  double looks_ = 100;
  std::map<std::string, Held> held_;
  using Due = std::pair<int, std::string>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::set<std::string> changed_;
};

TEST(PlayedRedis, FiguresAreTrueAtAnyRate) {
  for (const auto way : {RedisBook::Way::tracking, RedisBook::Way::notifications}) {
    for (const int rate : {10, 100, 3000}) {
      Played played(way, rate);
      played.play();
      const bool all_told = way == RedisBook::Way::notifications;
      for (const FamilyPicture& family : played.picture().families) {
        SCOPED_TRACE(fmt::format("{} at {}/s, {}", family.family, rate, all_told ? "told" : ""));
        const std::uint64_t grants = played.grants[family.family];
        const std::uint64_t releases = played.releases[family.family];
        EXPECT_LE(family.acquisitions, grants);
        const std::uint64_t expiries = played.expiries[family.family];
        const std::uint64_t thefts = all_told ? played.thefts[family.family] : 0;
        // With few looks, nobody sees a theft.
        const bool all_seen = rate == 10 || (all_told && family.family != "lock:stolen");
        if (all_seen || family.family != "lock:stolen") {
          EXPECT_LE(family.releases, releases);
          EXPECT_LE(family.releases + family.undecided, releases + expiries);
        }
        EXPECT_LE(family.expired_while_held, expiries);
        EXPECT_LE(family.owner_changed, thefts);
        EXPECT_EQ(family.taken_over, 0U);
        EXPECT_EQ(family.renewal_stopped_now, 0U);
        if (all_seen) {
          EXPECT_EQ(family.acquisitions, grants);
          EXPECT_EQ(family.releases, releases);
          EXPECT_EQ(family.expired_while_held + family.lapsed, expiries);
          EXPECT_EQ(family.owner_changed, thefts);
        }
        EXPECT_TRUE(!all_told || family.accuracy == "exact");
        if (family.family != "lock:order" || !family.hold.any()) continue;
        std::ranges::sort(played.holds);
        const double median = played.holds[played.holds.size() / 2] / 1000.0;
        EXPECT_NEAR(family.hold.p50, median, 0.25 * median) << family.hold_share;
        EXPECT_TRUE(!all_told || family.hold_share == 1);
      }
    }
  }
}

TEST(RedisBook, AnythingMayHappenInAnyOrder) {
  std::mt19937 random(7);  // NOLINT: the same each time
  for (const auto way : {RedisBook::Way::tracking, RedisBook::Way::notifications}) {
    RedisBook book(20, way);
    for (int i = 0; i < 20'000; ++i) {
      const std::string key(1, static_cast<char>('a' + random() % 30));
      if (i == 10'000) book.all_found();
      if (random() % 10 == 0) book.take_ready();
      switch (random() % 6) {
        case 0:
          book.changed(key, at(i));
          break;
        case 1:
          book.changed(key, static_cast<KeyEvent>(random() % 5), at(i));
          break;
        case 2:
          book.found(key, at(i));
          break;
        case 3:
          book.expire(at(i));
          break;
        case 4:
          if (random() % 50 == 0) book.all_changed(at(i));
          break;
        default:
          if (const auto turn = book.next(at(i))) {
            auto state =
                random() % 2 == 0 ? held_by("x", static_cast<int>(random() % 40)) : free_key();
            if (random() % 20 == 0) state.reset();
            book.looked(turn->key, KeyKind::text, state, at(i), at(i + 1));
          }
      }
      ASSERT_LE(book.size(), 20U);
    }
    while (const auto turn = book.next(at(30'000))) {
      book.looked(turn->key, KeyKind::text, free_key(), at(30'000), at(30'000));
    }
    EXPECT_EQ(book.first_looks_left(), 0U);
  }
}

}  // namespace
}  // namespace lockbench::watch
