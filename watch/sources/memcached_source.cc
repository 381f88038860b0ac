#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/memcached/client/connection.h"
#include "strategies/memcached/client/endpoint.h"
#include "watch/sources/memcached_book.h"
#include "watch/sources/server_source.h"
#include "watch/sources/sources.h"

namespace lockbench::watch {
namespace {

/// One connection's time of watching: a look at each key, one after the other, again and again.
class MemcachedWatch {
 public:
  MemcachedWatch(const memcached::Endpoint& endpoint, const Request& request, Env& env,
                 Budget& budget)
      : display_(endpoint.display()),
        request_(request),
        env_(env),
        budget_(budget),
        connection_(endpoint, request.command_timeout, env) {
    // Each look costs the server little, but more than these would show nothing new.
    constexpr Duration kShortest = std::chrono::milliseconds(10);
    const double rounds = request_.budget / static_cast<double>(request_.keys.size());
    every_ = std::max(kShortest, std::chrono::duration_cast<Duration>(
                                     std::chrono::duration<double>(1 / std::max(rounds, 1e-3))));
  }

  /// Connects, and checks that the server can be asked without touching a key.
  StoreResult<void> begin(const std::stop_token& stop) {
    budget_.owe(1);
    auto looked = connection_.glance(request_.keys.front(), stop);
    if (looked) return {};
    StoreError error = std::move(looked.error());
    if (error.kind == StoreError::Kind::rejected) {
      error.message += ": memcached 1.6 or newer is needed";
    }
    return tl::unexpected(std::move(error));
  }

  StoreResult<void> run(Sink& sink, Outages& outages, const std::stop_token& stop) {
    sink.facts(facts());
    MemcachedBook book;
    while (!stop.stop_requested()) {
      const TimePoint begun_at = env_.now();
      for (const std::string& key : request_.keys) {
        if (!budget_.spend_when_possible(1, env_, stop)) return {};
        const TimePoint asked_at = env_.now();
        const auto item = connection_.glance(key, stop);
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

  const std::string display_;
  const Request& request_;
  Env& env_;
  Budget& budget_;
  memcached::Connection connection_;
  Duration every_{};
};

}  // namespace

Made make_memcached_source(const Urls& urls, const Request& request) {
  if (request.keys.empty()) {
    return tl::unexpected<std::string>(
        "memcached: its keys can be neither listed nor watched: name those of the locks");
  }
  return one_server<MemcachedWatch>("memcached", urls, request, memcached::parse_endpoint);
}

}  // namespace lockbench::watch
