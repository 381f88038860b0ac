#include "watch/sources/memcached_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "strategies/memcached/client/connection.h"
#include "watch/sources/budget.h"
#include "watch/sources/memcached_book.h"
#include "watch/sources/outages.h"

namespace lockbench::watch {
namespace {

/// A look at each key, one after the other, again and again.
class MemcachedSource : public Source {
 public:
  MemcachedSource(memcached::Endpoint endpoint, const Request& request)
      : endpoint_(std::move(endpoint)),
        display_(endpoint_.display()),
        request_(request),
        env_(make_system_env(0), sent_),
        budget_(request.budget) {
    // Each look costs the server little, but more than these would show nothing new.
    constexpr Duration kShortest = std::chrono::milliseconds(10);
    const double rounds = request_.budget / static_cast<double>(request_.keys.size());
    every_ = std::max(kShortest, std::chrono::duration_cast<Duration>(
                                     std::chrono::duration<double>(1 / std::max(rounds, 1e-3))));
  }

  tl::expected<void, std::string> reach(const std::stop_token& stop) override {
    memcached::Connection connection(endpoint_, request_.command_timeout, env_);
    const auto looked = connection.glance(request_.keys.front(), stop);
    if (looked) return {};
    const bool old = looked.error().kind == StoreError::Kind::rejected;
    return tl::unexpected(old ? looked.error().message + ": memcached 1.6 or newer is needed"
                              : looked.error().message);
  }

  void run(Sink& sink, const std::stop_token& stop) override {
    Outages outages(sink, display_, env_);
    sink.facts(facts());
    while (!stop.stop_requested()) {
      memcached::Connection connection(endpoint_, request_.command_timeout, env_);
      auto ended = watch(connection, sink, outages, stop);
      if (!ended && !stop.stop_requested()) outages.lost(ended.error().message, stop);
    }
  }

  std::uint64_t commands() const override { return sent_.load(std::memory_order_relaxed); }

 private:
  SourceFacts facts() const {
    return {.store = "memcached",
            .endpoint = display_,
            .way = fmt::format("looks at each key every {}", format_duration(every_)),
            .accuracy = Accuracy::sampled,
            .waiters = {},
            .unseen = {"holds between two looks are missed, short ones more often than long ones",
                       "waiters: nothing in memcached knows of them",
                       "whether a lock was released or expired within the last second of its TTL, "
                       "as memcached counts in seconds"}};
  }

  StoreResult<void> watch(memcached::Connection& connection, Sink& sink, Outages& outages,
                          const std::stop_token& stop) {
    MemcachedBook book;
    while (!stop.stop_requested()) {
      const TimePoint begun_at = env_.now();
      for (const std::string& key : request_.keys) {
        while (!budget_.spend(1, env_.now()) && !stop.stop_requested()) {
          env_.wait(nullptr, budget_.next(1, env_.now()), stop);
        }
        if (stop.stop_requested()) return {};
        const TimePoint asked_at = env_.now();
        const auto item = connection.glance(key, stop);
        if (!item) return tl::unexpected(item.error());
        const TimePoint now = env_.now();
        budget_.answered(now - asked_at, now);
        outages.restored();
        sink.seen(display_, book.looked(key, *item, asked_at, now));
      }
      env_.wait(nullptr, begun_at + every_, stop);
    }
    return {};
  }

  const memcached::Endpoint endpoint_;
  const std::string display_;
  const Request request_;
  std::atomic<std::uint64_t> sent_ = 0;
  CountingEnv env_;
  Budget budget_;
  Duration every_{};
};

}  // namespace

std::unique_ptr<Source> make_memcached_source(memcached::Endpoint endpoint,
                                              const Request& request) {
  return std::make_unique<MemcachedSource>(std::move(endpoint), request);
}

}  // namespace lockbench::watch
