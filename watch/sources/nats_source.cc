#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "strategies/nats/client/connection.h"
#include "watch/sources/keys.h"
#include "watch/sources/nats_locks.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

constexpr Duration kHearFor = std::chrono::milliseconds(20);
/// A consumer that has nothing to send says so this often.
constexpr Duration kBeat = std::chrono::seconds(1);
/// How often it looks for buckets that were not there.
constexpr Duration kLookEvery = std::chrono::seconds(2);

/// Watches buckets by a consumer of each, as nats.go's KeyValue.WatchAll does: it sends the latest
/// message of each key and then every new one. Messages come on a connection of their own.
class NatsWatch : public Watching {
 public:
  NatsWatch(const nats::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        asks_(endpoint, request_.command_timeout, env_),
        hears_(endpoint, request_.command_timeout, env_) {}

  void begin() {
    need(hears_.connect(stop_));
    look_for_buckets();
  }

  void run() {
    reporter().facts({.store = "nats",
                      .endpoint = hears_.display(),
                      .way = "consumer of each bucket",
                      .accuracy = Accuracy::exact,
                      .waiters = {},
                      .unseen = {"clients that wait: they leave no trace in a bucket",
                                 "keys that are purged from the stream instead of deleted: they "
                                 "count as held until their TTL ends",
                                 "a TTL of a single key (NATS 2.11)"}});
    reporter().restored();
    while (!stopped()) {
      if (hear()) end_expired();
      if (env_.now() >= look_at_) look_for_buckets();
    }
  }

 private:
  struct Bucket {
    Duration ttl{};            ///< Duration::max(): none
    std::uint64_t latest = 0;  ///< message; later ones are changes
    TimePoint heard_at{};
    TimePoint missed_at = TimePoint::min();  ///< when it last showed that messages were left out
  };

  /// A request about a bucket. Nothing if there is no such bucket.
  std::optional<nats::Answer> ask(std::string_view name, const std::string& bucket,
                                  std::string_view payload = {}) {
    if (!spend(1)) throw Failure("stopped");
    const std::string subject = fmt::format("$JS.API.{}.KV_{}", name, bucket);
    auto answer = timed([&] {
      return need(
          asks_.ask({.name = name, .key = bucket, .subject = subject, .payload = payload}, stop_));
    });
    if (answer.refusal == nats::Refusal::no_stream) return std::nullopt;
    if (answer.refusal != nats::Refusal::none) lost(bucket, answer.why);
    return answer;
  }

  [[noreturn]] void lost(std::string_view bucket, std::string_view why) const {
    throw Failure(fmt::format("{}: bucket {}: {}", hears_.display(), bucket, why));
  }

  void look_for_buckets() {
    look_at_ = env_.now() + kLookEvery;
    for (const std::string& bucket : buckets_in(request_.locks)) {
      if (!stopped() && !buckets_.contains(bucket)) open(bucket);
    }
  }

  void open(const std::string& bucket) {
    // nats-server 2.9 must not be asked for more while another client's request makes the stream.
    const auto stream = ask("STREAM.INFO", bucket);
    if (!stream || !stream->is_made) return;
    const nlohmann::json consumer{{"stream_name", "KV_" + bucket},
                                  {"config",
                                   {{"deliver_subject", hears_.heard_subject(bucket)},
                                    {"deliver_policy", "last_per_subject"},
                                    {"filter_subject", fmt::format("$KV.{}.>", bucket)},
                                    {"ack_policy", "none"},
                                    {"max_deliver", 1},
                                    {"idle_heartbeat", kBeat.count()},
                                    {"mem_storage", true},
                                    {"num_replicas", 1}}}};
    if (!ask("CONSUMER.CREATE", bucket, consumer.dump())) return;
    buckets_[bucket] = {.ttl = stream->max_age, .latest = stream->sequence, .heard_at = env_.now()};
  }

  /// Whether nothing more is there to hear.
  bool hear() {
    constexpr int kMostMessages = 4096;
    Duration longest = kHearFor;
    for (int i = 0; i < kMostMessages && !stopped(); ++i) {
      const auto said = need(hears_.hear(longest, stop_));
      if (!said) {
        check_life();
        return true;
      }
      if (said->kind == nats::Message::Kind::error) {
        throw Failure(fmt::format("{}: {}", hears_.display(), printable(said->text)));
      }
      take(*said);
      longest = Duration::zero();
    }
    return false;
  }

  /// A consumer ends without a word, with its stream or its server.
  void check_life() const {
    for (const auto& [name, bucket] : buckets_) {
      const bool silent = env_.now() - bucket.heard_at > kBeat + request_.command_timeout;
      if (silent) lost(name, "its consumer is silent");
    }
  }

  /// A message of a bucket, or a heartbeat, which comes on the consumer's own subject.
  void take(const nats::Message& said) {
    const auto delivery = nats::parse_delivery(said.reply);
    const std::string before = delivery ? "$KV." : hears_.heard_subject("");
    if (!said.subject.starts_with(before)) return;
    const std::string_view rest = std::string_view(said.subject).substr(before.size());
    const std::size_t dot = rest.find('.');
    const auto found = buckets_.find(rest.substr(0, dot));
    if (found == buckets_.end()) return;
    Bucket& bucket = found->second;
    bucket.heard_at = env_.now();
    if (!delivery || dot == std::string_view::npos) return;
    const bool is_new = delivery->sequence > bucket.latest;
    if (is_new) {
      // A stream keeps the latest message of a key only, so it sends no other.
      const std::uint64_t missed = delivery->sequence - bucket.latest - 1;
      reporter().missed(missed, "overwritten before NATS sent them");
      if (missed > 0) bucket.missed_at = bucket.heard_at;
      bucket.latest = delivery->sequence;
    }
    const Duration age = std::clamp<Duration>(env_.wall_now() - delivery->stored_at,
                                              Duration::zero(), kLongestDuration);
    take(fmt::format("{}/{}", found->first, rest.substr(dot + 1)), said, bucket, is_new,
         is_new ? bucket.heard_at : bucket.heard_at - age);
  }

  void take(const std::string& lock, const nats::Message& said, const Bucket& bucket, bool is_new,
            TimePoint stored_at) {
    if (!is_wanted(request_, lock)) return;
    const bool deleted = nats::is_deletion(said.headers);
    const auto value = deleted ? std::nullopt : read_lock_value(said.text);
    if (!deleted && !value) reporter().no_lock(lock);
    const auto before = locks_.stored_at(lock);
    if (value && !before && locks_.size() >= request_.most_locks) {
      return reporter().missed(1, "more locks than are followed at once");
    }
    auto seen = locks_.take(lock, value, stored_at, bucket.ttl, bucket.heard_at);
    if (!seen) return;
    // A release may be among the messages that were left out: then nobody wrote over the lock.
    const std::uint64_t changes = before && *before <= bucket.missed_at ? 2 : 1;
    seen->changes = is_new ? changes : 0;
    reporter().seen(*std::move(seen));
  }

  /// Asks for the bucket's TTL first: it may have been raised meanwhile.
  void end_expired() {
    while (const auto lock = locks_.due(env_.now())) {
      if (budget_.next(1, env_.now()) > env_.now()) return;
      const std::string name = lock->substr(0, lock->find('/'));
      const auto stream = ask("STREAM.INFO", name);
      if (!stream || !stream->is_made) lost(name, "it was removed");
      Bucket& bucket = buckets_[name];
      bucket.ttl = stream->max_age;
      // The other connection may be late with a renewal. A message that expired is never sent.
      constexpr int kMostHears = 50;
      for (int i = 0; i < kMostHears && bucket.latest < stream->sequence; ++i) hear();
      if (locks_.due(env_.now()) != lock) continue;
      if (auto ended = locks_.expire(*lock, stream->max_age, env_.now())) {
        reporter().seen(*std::move(ended));
      }
    }
  }

  nats::Connection asks_, hears_;
  NatsLocks locks_;
  std::map<std::string, Bucket, std::less<>> buckets_;  ///< that are watched
  TimePoint look_at_{};
};

}  // namespace

Made make_nats_source(const std::string& url, const Request& request) {
  if (buckets_in(request.locks).empty()) {
    return tl::unexpected<std::string>(
        "NATS: --locks must name buckets, as BUCKET/KEY, such as locks/*");
  }
  return one_server<NatsWatch>(url, request, nats::parse_endpoint);
}

}  // namespace lockbench::watch
