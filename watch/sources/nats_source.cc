#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "strategies/nats/client/bucket.h"
#include "watch/sources/key_locks.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

constexpr Duration kHearFor = std::chrono::milliseconds(20);
constexpr Duration kLookEvery = std::chrono::seconds(2);

/// Watches buckets by a consumer of each, as nats.go's KeyValue.WatchAll does: it sends the latest
/// message of each key and then every new one. Without a message, a key ends by its bucket's TTL
/// (the stream's max_age), and a consumer with its stream or its server: looks at the streams show
/// what should have been heard.
class NatsWatch : public Watching {
 public:
  NatsWatch(const nats::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        names_(buckets_in(request_.locks)),
        nats_(endpoint, request_.command_timeout, env_),
        locks_(request_, request_.most_locks) {}

  void begin() {
    need(nats_.connect(stop_));
    look();
  }

  void run() {
    while (!stopped()) {
      shown_ == buckets_.size() ? catch_up() : show_all();
      hear();
      end_expired();
      if (env_.now() >= look_at_) look();
    }
  }

 private:
  struct Bucket {
    Duration ttl{};              ///< Duration::max(): none
    std::uint64_t unread = 0;    ///< messages that were there before, at most
    std::uint64_t stored = 0;    ///< the latest message when it was looked at
    std::uint64_t heard = 0;     ///< the latest message that came, or was there before
    std::int64_t after_gap = 0;  ///< the latest message before which others were left out
    TimePoint silent_since{};
  };

  /// A request about a bucket. Nothing if there is no such bucket.
  std::optional<nats::Answer> ask(std::string_view name, const std::string& bucket,
                                  std::string_view payload = {}) {
    if (!spend(1)) throw Failure("stopped");
    const std::string subject = fmt::format("$JS.API.{}.KV_{}", name, bucket);
    auto answer = timed([&] {
      return need(
          nats_.ask({.name = name, .key = bucket, .subject = subject, .payload = payload}, stop_));
    });
    if (answer.refusal == nats::Refusal::no_stream) return std::nullopt;
    if (answer.refusal != nats::Refusal::none) lost(bucket, answer.why);
    return answer;
  }

  [[noreturn]] void lost(std::string_view bucket, std::string_view why) const {
    throw Failure(fmt::format("{}: bucket {}: {}", nats_.display(), bucket, why));
  }

  void look() {
    look_at_ = env_.now() + kLookEvery;
    for (const std::string& name : names_) {
      if (stopped()) return;
      // nats-server 2.9 must not be asked for more while another client's request makes the stream.
      const auto stream = ask("STREAM.INFO", name);
      const bool is_there = stream && stream->is_made;
      const auto known = buckets_.find(name);
      if (known == buckets_.end()) {
        if (is_there) open(name, *stream);
        continue;
      }
      Bucket& bucket = known->second;
      if (!is_there || stream->sequence < bucket.heard) lost(name, "it was removed");
      if (stream->max_age != bucket.ttl) lost(name, "its TTL was changed");
      bucket.stored = stream->sequence;
      bucket.silent_since = env_.now();
    }
  }

  void open(const std::string& bucket, const nats::Answer& stream) {
    const nlohmann::json config{{"stream_name", "KV_" + bucket},
                                {"config",
                                 {{"deliver_subject", need(nats_.heard_subject())},
                                  {"deliver_policy", "last_per_subject"},
                                  {"filter_subject", fmt::format("$KV.{}.>", bucket)},
                                  {"ack_policy", "none"},
                                  {"max_deliver", 1},
                                  {"mem_storage", true},
                                  {"num_replicas", 1}}}};
    const auto consumer = ask("CONSUMER.CREATE", bucket, config.dump());
    if (!consumer) return;
    buckets_[bucket] = {.ttl = stream.max_age,
                        .unread = consumer->pending,
                        .stored = stream.sequence,
                        .heard = stream.sequence,
                        .silent_since = env_.now()};
  }

  void show_all() {
    SourceFacts facts{.store = "nats",
                      .endpoint = nats_.display(),
                      .way = "consumer of each bucket",
                      .accuracy = Accuracy::exact,
                      .waiters = {},
                      .unseen = {"clients that wait: they leave no trace in a bucket",
                                 "keys that are purged from the stream instead of deleted: they "
                                 "count as held until their TTL ends",
                                 "a TTL of a single key (NATS 2.11)"}};
    for (const std::string& name : names_) {
      if (buckets_.contains(name)) continue;
      facts.unseen.push_back(fmt::format("bucket {}: there is none yet", name));
    }
    reporter().facts(facts);
    catch_up();
    if (stopped()) return;
    reporter().restored();
    shown_ = buckets_.size();
    reporter().seen(locks_.begun(env_.now()));
  }

  /// Hears all that was there when it looked.
  void catch_up() {
    for (auto& [name, bucket] : buckets_) {
      while (!stopped() && (bucket.unread > 0 || bucket.heard < bucket.stored)) {
        const bool silent = env_.now() - bucket.silent_since > request_.command_timeout;
        if (silent && bucket.unread == 0) lost(name, "its consumer is silent");
        if (silent) bucket.unread = 0;  // they expired before they were sent
        hear();
      }
    }
  }

  void hear() {
    constexpr int kMostMessages = 4096;
    Duration longest = kHearFor;
    for (int i = 0; i < kMostMessages && !stopped(); ++i) {
      const auto said = need(nats_.hear(longest, stop_));
      if (!said) break;
      if (said->kind == nats::Message::Kind::error) {
        throw Failure(fmt::format("{}: {}", nats_.display(), printable(said->text)));
      }
      take(*said);
      longest = Duration::zero();
    }
    reporter().missed(locks_.take_unfollowed(), "more locks than are followed at once");
    for (const std::string& key : locks_.take_no_locks()) reporter().no_lock(key);
  }

  void take(const nats::Message& said) {
    constexpr std::string_view kBefore = "$KV.";
    const auto delivery = nats::parse_delivery(said.reply);
    if (!delivery || !said.subject.starts_with(kBefore)) return;
    const std::string_view key = std::string_view(said.subject).substr(kBefore.size());
    const std::size_t dot = key.find('.');
    const auto found = buckets_.find(key.substr(0, dot));
    if (found == buckets_.end() || dot == std::string_view::npos) return;
    Bucket& bucket = found->second;
    const TimePoint now = env_.now();
    const auto number = static_cast<std::int64_t>(delivery->sequence);
    const bool is_new = delivery->sequence > bucket.heard;
    bucket.silent_since = now;
    bucket.unread = std::min(bucket.unread, delivery->pending);
    if (is_new) {
      // A stream keeps the latest message of a key only, so it sends no other.
      const std::uint64_t missed = delivery->sequence - bucket.heard - 1;
      reporter().missed(missed, "overwritten before NATS sent them");
      if (missed > 0) bucket.after_gap = number;
      bucket.heard = delivery->sequence;
    }
    const Duration age = std::clamp<Duration>(env_.wall_now() - delivery->stored_at,
                                              Duration::zero(), kLongestDuration);
    const TimePoint at = is_new ? now : now - age;
    const KeyChange change{
        .deleted = nats::is_deletion(said.headers),
        .entry = {.name = fmt::format("{}/{}", found->first, key.substr(dot + 1)),
                  .value = said.text,
                  .created = 1,
                  .modified = number,
                  .ends = bucket.ttl == Duration::max() ? TimePoint::max() : at + bucket.ttl}};
    const std::int64_t before = locks_.modified(change.entry.name);
    for (Sighting& seen : locks_.take({change}, at)) {
      if (!is_new || !shown_) continue;
      // A release may be among the messages that were left out: then nobody wrote over the lock.
      if (before > 0 && before < bucket.after_gap) ++seen.changes;
      // Until the server removed the key, its holder could release it.
      if (seen.holders.empty()) seen.ended = Ending::released;
      reporter().seen(std::move(seen));
    }
  }

  /// A renewal that came in time may still be on its way: it looks first.
  void end_expired() {
    const TimePoint now = env_.now(), over = now - nats::kKeptLonger;
    if (!locks_.has_expired(over) || budget_.next(1, now) > now) return;
    look();
    catch_up();
    for (Sighting& seen : locks_.expired(over)) {
      locks_.take({{.deleted = true, .entry = {.name = seen.lock}}}, over);
      seen.at = env_.now();
      reporter().seen(std::move(seen));
    }
  }

  const std::set<std::string> names_;
  nats::Connection nats_;
  KeyLocks locks_;
  std::map<std::string, Bucket, std::less<>> buckets_;  ///< that are watched
  std::optional<std::size_t> shown_;  ///< buckets whose locks were told; nothing: it sees none yet
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
