#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/thread.h"
#include "testbed/servers/server.h"
#include "tests/support/eventually.h"
#include "watch/source.h"

namespace lockbench::watch {

/// Records a source's reports in order; tests wait for them, for a bounded time.
class Sightings : public Sink {
 public:
  void facts(const SourceFacts& said) override {
    add([&] { facts_ = said; });
  }
  void seen(const std::string& /*endpoint*/, Sighting sighting) override {
    add([&] { of_[sighting.lock].push_back(std::move(sighting)); });
  }
  void proposed(std::string pattern) override {
    add([&] { proposed_.insert(std::move(pattern)); });
  }
  void blind(const std::string& endpoint, TimePoint /*at*/, std::string reason) override {
    add([&] {
      if (blind_ == sees_) ++blind_;
      blind_endpoint_ = endpoint;
      why_blind_ = std::move(reason);
    });
  }
  void sees(const std::string& /*endpoint*/, TimePoint /*at*/) override {
    add([&] { ++sees_; });
  }
  void missed(const std::string& /*endpoint*/, std::uint64_t changes, std::string reason) override {
    add([&] { missed_[std::move(reason)] += changes; });
  }

  /// Whether the condition becomes true in time.
  bool comes(const std::function<bool()>& condition) {
    // Polls too: not every awaited event comes through this sink.
    constexpr std::chrono::milliseconds kAgain(20);
    std::unique_lock lock(mutex_);
    for (std::chrono::milliseconds waited(0); waited < test::kPatience; waited += kAgain) {
      if (changed_.wait_for(lock, kAgain, condition)) return true;
    }
    return false;
  }
  /// Whether the pattern has been proposed.
  bool was_proposed(const std::string& pattern) {
    const std::scoped_lock lock(mutex_);
    return proposed_.contains(pattern);
  }
  /// The first sighting of the lock that fits. To await a later one, pass the result as `after`.
  std::optional<Sighting> await(const std::string& lock,
                                const std::function<bool(const Sighting&)>& like,
                                TimePoint after = TimePoint::min()) {
    std::optional<Sighting> found;
    comes([&] {
      for (const Sighting& one : of_[lock]) {
        if (one.at < after || !like(one)) continue;
        found = one;
        return true;
      }
      return false;
    });
    return found;
  }
  /// The latest sighting of the lock, once it fits.
  std::optional<Sighting> await_latest(const std::string& lock,
                                       const std::function<bool(const Sighting&)>& like) {
    std::optional<Sighting> found;
    comes([&] {
      const std::vector<Sighting>& all = of_[lock];
      if (all.empty() || !like(all.back())) return false;
      found = all.back();
      return true;
    });
    return found;
  }
  std::optional<Sighting> await_held(const std::string& lock, const std::string& owner) {
    return await(lock, [&](const Sighting& one) {
      return !one.holders.empty() && one.holders.front().owner == owner;
    });
  }
  std::optional<Sighting> await_any(const std::string& lock, TimePoint after = TimePoint::min()) {
    return await(
        lock, [](const Sighting& one) { return !one.holders.empty(); }, after);
  }
  std::optional<Sighting> await_ttl(const std::string& lock) {
    return await(lock, [](const Sighting& one) { return one.ttl_left.has_value(); });
  }
  std::optional<Sighting> await_free(const std::string& lock, TimePoint after) {
    return await(
        lock, [](const Sighting& one) { return one.holders.empty(); }, after);
  }
  std::vector<Sighting> all_of(const std::string& lock) {
    const std::scoped_lock guard(mutex_);
    return of_[lock];
  }

  // Read these in comes(), or after the source has ended.
  SourceFacts facts_;
  std::map<std::string, std::vector<Sighting>> of_;
  std::set<std::string> proposed_;
  std::map<std::string, std::uint64_t> missed_;
  std::string blind_endpoint_, why_blind_;
  int blind_ = 0, sees_ = 0;  ///< outages, and their ends

 private:
  template <class Change>
  void add(Change change) {
    {
      const std::scoped_lock lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
};

inline std::vector<std::string> owners_in(const std::vector<Party>& parties) {
  std::vector<std::string> owners;
  owners.reserve(parties.size());
  for (const Party& party : parties) owners.push_back(party.owner);
  return owners;
}

/// A source that runs until this is destroyed. Throws if it cannot be made or reach its server.
class Running {
 public:
  Running(const std::string& store, const std::string& url, const Request& request, Sink& sink) {
    auto made = make_source(store, url, request);
    if (!made) throw std::runtime_error(made.error());
    source_ = *std::move(made);
    if (auto reached = source_->reach({}); !reached) throw std::runtime_error(reached.error());
    auto thread =
        Thread::start([this, &sink](const std::stop_token& stop) { source_->run(sink, stop); },
                      [](const std::string& why) { throw std::runtime_error(why); });
    if (!thread) throw std::runtime_error(thread.error());
    thread_ = *std::move(thread);
  }

  Source& source() { return *source_; }
  void stop() { thread_.finish(); }

 private:
  std::unique_ptr<Source> source_;
  Thread thread_;  ///< last: it uses the source
};

/// Kills the server, which the watch must report, and starts it again. Returns once the watch sees
/// it, with a time before which all sightings are of the old server.
inline TimePoint killed_and_back(testbed::Server& server, Sightings& seen, bool keep_data) {
  EXPECT_TRUE(server.kill_hard());
  EXPECT_TRUE(seen.comes([&] { return seen.blind_ == 1; }));
  EXPECT_THAT(seen.blind_endpoint_, testing::HasSubstr(server.address()));
  const TimePoint restarted_at = Carrier::current().now();
  EXPECT_TRUE(server.restart(keep_data));
  EXPECT_TRUE(seen.comes([&] { return seen.sees_ == 1; }));
  return restarted_at;
}

}  // namespace lockbench::watch
