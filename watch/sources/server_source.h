#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "deployment/failure.h"
#include "strategies/env.h"
#include "watch/source.h"

namespace lockbench::watch {

/// Limits the commands sent to a server: a token bucket with room for one second's worth. While the
/// server answers much later than usual, the rate keeps shrinking, down to a sixteenth. For one
/// thread.
class Budget {
 public:
  explicit Budget(double per_second) : full_(per_second), rate_(per_second) {}

  /// Spends all of them or none.
  bool spend(std::uint64_t commands, TimePoint now) {
    refill(now);
    if (held_ < static_cast<double>(commands)) return false;
    held_ -= static_cast<double>(commands);
    return true;
  }
  /// Waits until they can be spent, and spends them. False: stopped first.
  bool spend_when_possible(std::uint64_t commands, Env& env, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (spend(commands, env.now())) return true;
      env.wait(nullptr, next(commands, env.now()), stop);
    }
    return false;
  }
  /// Returns what was spent and not used.
  void give_back(std::uint64_t commands) { held_ += static_cast<double>(commands); }
  /// Spends in advance, for commands that cannot wait, such as the first ones of a connection.
  void owe(std::uint64_t commands) { held_ -= static_cast<double>(commands); }
  /// When they can be spent, at the present rate.
  TimePoint next(std::uint64_t commands, TimePoint now) {
    refill(now);
    const double lacking = static_cast<double>(commands) - held_;
    if (lacking <= 0) return now;
    return now + std::chrono::duration_cast<Duration>(
                     std::chrono::duration<double>(lacking / std::max(rate_, 1e-3)));
  }
  /// Adapts the rate to the server's latest response time.
  void answered(Duration latency, TimePoint now) {
    constexpr double kRise = 1.001, kWeight = 0.2, kTooMuch = 4, kLowest = 1.0 / 16;
    constexpr double kTolerance = 0.050;  // seconds that a busy machine may add
    constexpr Duration kPace = std::chrono::milliseconds(200);
    const double took = seconds(latency);
    usual_ = usual_ == 0 ? took : std::min(usual_ * kRise, took);
    recent_ = recent_ == 0 ? took : recent_ + kWeight * (took - recent_);
    if (now - changed_at_ < kPace) return;
    changed_at_ = now;
    const bool slow = recent_ > kTooMuch * usual_ + kTolerance;
    refill(now);
    rate_ = slow ? std::max(rate_ * 0.7, full_ * kLowest) : std::min(rate_ * 1.5, full_);
  }
  double rate() const { return rate_; }

 private:
  void refill(TimePoint now) {
    if (filled_at_ != TimePoint{}) held_ += rate_ * seconds(now - filled_at_);
    // A look spends several commands together, even if the budget is smaller than that.
    constexpr double kLeast = 8;
    held_ = std::min(held_, std::max(rate_, kLeast));
    filled_at_ = now;
  }

  const double full_;
  double rate_, held_ = full_;
  TimePoint filled_at_{};
  double usual_ = 0, recent_ = 0;  ///< response times in seconds; 0: unknown
  TimePoint changed_at_{};
};

/// Reports the sightings, proposals and blind periods of one source to the sink. For one thread.
class Reporter {
 public:
  /// `blind`: the sink knows that nothing is seen yet.
  Reporter(Sink& sink, std::string endpoint, Env& env, bool blind)
      : sink_(sink), endpoint_(std::move(endpoint)), env_(env), blind_(blind) {}

  void facts(const SourceFacts& facts) { sink_.facts(facts); }
  void seen(Sighting sighting) { sink_.seen(endpoint_, std::move(sighting)); }
  void seen(std::vector<Sighting> sightings) {
    for (Sighting& one : sightings) seen(std::move(one));
  }
  void proposed(std::string pattern) { sink_.proposed(std::move(pattern)); }
  /// Changes after `at` wait for a look; TimePoint::max(): none waits.
  void seen_until(TimePoint at) {
    if (at == seen_until_) return;
    seen_until_ = at;
    sink_.seen_until(endpoint_, at);
  }
  void missed(std::uint64_t changes, std::string reason) {
    if (changes > 0) sink_.missed(endpoint_, changes, std::move(reason));
  }

  void no_lock(const std::string& key) { sink_.no_lock(endpoint_, key); }

  /// Reports that the server is lost and waits before the next attempt. The pause grows from 50 ms
  /// to 5 s, even if the server is reached in between, unless it stays reachable for more than 5 s.
  void lost(const std::string& why, const std::stop_token& stop) {
    constexpr Duration kShortest = std::chrono::milliseconds(50),
                       kLongest = std::chrono::seconds(5);
    if (!std::exchange(blind_, true) && env_.now() - restored_at_ > kLongest) pause_ = {};
    // The endpoint is said beside the reason, which may begin with it, without its database.
    const std::size_t end = why.find(": ");
    const bool repeats = end != std::string::npos && endpoint_.starts_with(why.substr(0, end));
    sink_.blind(endpoint_, env_.now(), repeats ? why.substr(end + 2) : why);
    pause_ = pause_ == Duration::zero() ? kShortest : std::min(2 * pause_, kLongest);
    // Up to 10 % more or less, so that many watches do not reconnect together.
    const auto tenth = static_cast<std::uint64_t>(pause_.count() / 5) + 1;
    const Duration spread(static_cast<std::int64_t>(env_.random() % tenth));
    env_.wait(nullptr, env_.now() + pause_ * 9 / 10 + spread, stop);
  }
  /// Reports that the source sees everything from now on.
  void restored() {
    if (!std::exchange(blind_, false)) return;
    restored_at_ = env_.now();
    seen_until_ = TimePoint::max();
    sink_.sees(endpoint_, restored_at_);
  }

 private:
  Sink& sink_;
  const std::string endpoint_;
  Env& env_;
  bool blind_;
  Duration pause_{};
  TimePoint restored_at_{}, seen_until_ = TimePoint::max();
};

using deployment::Failure;
using deployment::need;

/// Base of the watch over one connection. A store's watch is constructed from an endpoint and a
/// Watching. It has `begin()`, which connects and checks permissions, and `run()`, which watches
/// until the stop. Both throw Failure when the connection fails.
class Watching {
 public:
  /// `reporter`: null if run() is not called.
  Watching(const Request& request, Env& env, Budget& budget, const std::stop_token& stop,
           Reporter* reporter)
      : request_(request), env_(env), budget_(budget), stop_(stop), reporter_(reporter) {}

 protected:
  bool stopped() const { return stop_.stop_requested(); }
  /// Waits until the budget allows the commands. False: stopped first.
  bool spend(std::uint64_t commands) { return budget_.spend_when_possible(commands, env_, stop_); }
  /// Calls `ask` and reports its duration to the budget.
  template <class Ask>
  auto timed(Ask ask) {
    const TimePoint asked_at = env_.now();
    auto answer = ask();
    const TimePoint now = env_.now();
    budget_.answered(now - asked_at, now);
    return answer;
  }
  Reporter& reporter() { return *reporter_; }

  const Request& request_;
  Env& env_;
  Budget& budget_;
  const std::stop_token& stop_;

 private:
  Reporter* const reporter_;
};

/// As facts name it: each database of a Redis is watched by itself.
template <class Endpoint>
std::string name_of_endpoint(const Endpoint& endpoint) {
  if constexpr (requires { endpoint.display_with_database(); }) {
    return endpoint.display_with_database();
  } else {
    return std::invoke(&Endpoint::display, endpoint);
  }
}

/// A source that keeps one `Watch`, which is a Watching, connected to its server.
template <class Watch, class Endpoint>
class ServerSource final : public Source {
 public:
  ServerSource(Endpoint endpoint, const Request& request)
      : endpoint_(std::move(endpoint)),
        display_(name_of_endpoint(endpoint_)),
        request_(request),
        env_(make_system_env(random_seed()),
             [this] { sent_.fetch_add(1, std::memory_order_relaxed); }),
        budget_(request.budget) {}

  const std::string& endpoint() const override { return display_; }

  tl::expected<void, std::string> reach(const std::stop_token& stop) override {
    auto reached = deployment::attempt([&] {
      Watch(endpoint_, {request_, env_, budget_, stop, nullptr}).begin();
    });
    told_blind_ = !reached;
    return reached;
  }

  void run(Sink& sink, const std::stop_token& stop) override {
    Reporter reporter(sink, display_, env_, std::exchange(told_blind_, true));
    while (!stop.stop_requested()) {
      const auto ended = deployment::attempt([&] {
        Watch watch(endpoint_, {request_, env_, budget_, stop, &reporter});
        watch.begin();
        watch.run();
      });
      if (!ended && !stop.stop_requested()) reporter.lost(ended.error(), stop);
    }
  }

  std::uint64_t commands() const override { return sent_.load(std::memory_order_relaxed); }

 private:
  const Endpoint endpoint_;
  const std::string display_;
  const Request request_;
  std::atomic<std::uint64_t> sent_ = 0;
  CountingEnv env_;
  Budget budget_;
  bool told_blind_ = false;  ///< the sink knows that nothing is seen yet
};

using Made = tl::expected<std::unique_ptr<Source>, std::string>;

/// Like make_source.
Made make_etcd_source(const std::string& url, const Request& request);
Made make_nats_source(const std::string& url, const Request& request);
/// Watches named locks and lock tables of one MariaDB server. Runs only SELECT.
Made make_mysql_source(const std::string& url, const Request& request);
/// Watches advisory locks and lock tables of one PostgreSQL database. Runs only
/// SELECT, in read-only transactions, and leaves no settings behind, so it works through a pooler.
Made make_postgres_source(const std::string& url, const Request& request);
Made make_redis_source(const std::string& url, const Request& request);
Made make_zookeeper_source(const std::string& url, const Request& request);

/// The source for the server or cluster that `parse` reads from the URL.
template <class Watch, class Parse>
Made one_server(const std::string& url, const Request& request, Parse parse) {
  auto endpoint = parse(url);
  if (!endpoint) return tl::unexpected(std::move(endpoint.error()));
  using Endpoint = typename decltype(endpoint)::value_type;
  return std::make_unique<ServerSource<Watch, Endpoint>>(*std::move(endpoint), request);
}

}  // namespace lockbench::watch
