#include "strategies/store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "strategies/carrier.h"
#include "strategies/nats/client/connection.h"

namespace lockbench::nats {
namespace {

class NatsStore : public Store {
 public:
  NatsStore(Endpoint endpoint, Duration command_timeout)
      : env_(make_system_env(random_seed())), nats_(std::move(endpoint), command_timeout, *env_) {}

  std::string display() const override { return nats_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    nats_.close();
    return nats_.connect(stop);
  }

  StoreResult<StoreFacts> facts() override {
    // A connection that idled through a run may be to a server that is gone.
    nats_.close();
    return nats_.connect().map([&] {
      return StoreFacts{.version = nats_.server().version, .instance = nats_.server().id};
    });
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    nats_.close();
    return remove_in_batches(keys, 1, display(), stop,
                             [&](auto batch) { return purge(batch.front(), stop); });
  }

  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    nats_.close();
    auto removed = remove_streams(
        [&](const Answer::Stream& stream) { return is_of_run(run_of_stream(stream.name), run_id); },
        stop);
    if (!removed) return removed;
    // Buckets of killed runs do not expire. If this fails, the next run tries again.
    const std::string limit =
        fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(
                                                std::chrono::system_clock::now() - kKeptFor)));
    (void)remove_streams(
        [&](const Answer::Stream& stream) {
          return is_run_id(run_of_stream(stream.name)) && stream.last_used < limit;
        },
        stop);
    return removed;
  }

 private:
  /// Removes the key from both of its buckets: all of its messages.
  StoreResult<std::size_t> purge(const std::string& key, const std::stop_token& stop) {
    bool existed = false;
    for (const bool expires : {true, false}) {
      const Place place = place_of(key, expires);
      const auto purged =
          nats_.ask({.name = "STREAM.PURGE",
                     .key = key,
                     .subject = "$JS.API.STREAM.PURGE." + place.stream,
                     .payload = nlohmann::json::object({{"filter", place.subject}}).dump()},
                    stop);
      if (!purged) return tl::unexpected(purged.error());
      if (purged->refusal == Refusal::no_stream) continue;
      if (purged->refusal != Refusal::none) return refused(*purged);
      existed = existed || purged->purged > 0;
    }
    return existed ? 1 : 0;
  }

  /// Returns how many there were.
  StoreResult<std::size_t> remove_streams(const std::function<bool(const Answer::Stream&)>& which,
                                          const std::stop_token& stop) {
    std::vector<std::string> found;
    constexpr int kMostPages = 1000;
    std::uint64_t seen = 0;
    for (int page = 0; page < kMostPages; ++page) {
      if (stop.stop_requested()) return removal_stopped(display());
      const auto listed = nats_.ask({.name = "STREAM.LIST",
                                     .key = {},
                                     .subject = "$JS.API.STREAM.LIST",
                                     .payload = nlohmann::json::object({{"offset", seen}}).dump()},
                                    stop);
      if (!listed) return tl::unexpected(listed.error());
      if (listed->refusal != Refusal::none) return refused(*listed);
      for (const Answer::Stream& stream : listed->streams) {
        if (which(stream)) found.push_back(stream.name);
      }
      seen += listed->streams.size();
      if (listed->streams.empty() || seen >= listed->all_streams) break;
    }
    return remove_in_batches(found, 1, display(), stop, [&](auto one) -> StoreResult<std::size_t> {
      const auto removed = nats_.ask(
          {.name = "STREAM.DELETE", .key = {}, .subject = "$JS.API.STREAM.DELETE." + one.front()},
          stop);
      if (!removed) return tl::unexpected(removed.error());
      // Another host of the same run may have been faster.
      if (removed->refusal == Refusal::no_stream) return 0;
      if (removed->refusal != Refusal::none) return refused(*removed);
      return 1;
    });
  }

  tl::unexpected<StoreError> refused(const Answer& answer) const {
    return nats_.fail(StoreError::Kind::rejected, answer.why);
  }

  std::unique_ptr<Env> env_;
  Connection nats_;
};

const StoreRegistration nats_store({
    .name = "nats",
    .value_name = "URL",
    .help = "use this NATS with JetStream instead of a private one: "
            "[nats://][user:password@]HOST[:PORT], or tls:// for TLS, with "
            "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.3 as needed",
    .display = display_of<parse_endpoint>,
    .secrecy =
        [](const std::string& url) {
          return secrecy_by_scheme(parse_endpoint(url).value(), "tls://");
        },
    .make = make_store<parse_endpoint, NatsStore>,
});

}  // namespace
}  // namespace lockbench::nats
