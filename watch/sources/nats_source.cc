#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "strategies/nats/client/connection.h"
#include "strategies/number.h"
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
constexpr std::size_t kMostWatchedBuckets = 1000;
constexpr std::string_view kStreamOfBucket = "KV_";

/// Watches buckets by a consumer of each, as nats.go's KeyValue.WatchAll does: it sends the latest
/// message of each key and then every new one, numbered. Messages come on a connection of their
/// own.
class NatsWatch : public Watching {
 public:
  NatsWatch(const nats::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        buckets_(request_.locks),
        asks_(endpoint, request_.command_timeout, env_),
        hears_(endpoint, request_.command_timeout, env_),
        locks_(request_) {}

  void begin() {
    need(hears_.connect(stop_));
    look_for_buckets();
  }

  void run() {
    reporter().facts(
        {.store = "nats",
         .endpoint = hears_.display(),
         .way = "consumer of each bucket",
         .accuracy = Accuracy::exact,
         .waiters = {},
         .unseen = {"clients that wait: they leave no trace in a bucket",
                    "keys that somebody purges from the stream instead of deleting them: they "
                    "count as held until their TTL ends",
                    "a TTL of a single key (NATS 2.11): only that of its bucket counts"}});
    reporter().restored();
    while (!stopped()) {
      hear();
      end_expired();
      reporter().missed(locks_.take_skipped(), "overwritten before NATS sent them");
      if (env_.now() >= look_at_) look_for_buckets();
    }
  }

 private:
  struct Consumer {
    WallTime created{};      ///< by the server's clock
    TimePoint created_at{};  ///< the same, by ours
    TimePoint heard_at{};
    std::uint64_t delivered = 0;
  };

  /// A request about a bucket. Nothing if there is no such bucket.
  std::optional<nats::Answer> ask(std::string_view name, const std::string& bucket,
                                  std::string_view payload = {}) {
    if (!spend(1)) throw Failure("stopped");
    auto answer = timed([&] {
      return need(
          asks_.ask({.name = name,
                     .key = bucket,
                     .subject = fmt::format("$JS.API.{}.{}{}", name, kStreamOfBucket, bucket),
                     .payload = payload},
                    stop_));
    });
    if (answer.refusal == nats::Refusal::no_stream) return std::nullopt;
    if (answer.refusal != nats::Refusal::none) lost(bucket, answer.why);
    return answer;
  }

  [[noreturn]] void lost(const std::string& bucket, const std::string& why) const {
    throw Failure(fmt::format("{}: bucket {}: {}", hears_.display(), bucket, why));
  }

  void look_for_buckets() {
    look_at_ = env_.now() + kLookEvery;
    std::set<std::string> wanted = buckets_.named();
    if (buckets_.need_a_list()) {
      if (!spend(1)) return;
      for (const auto& stream : need(asks_.streams(stop_))) {
        if (!stream.name.starts_with(kStreamOfBucket)) continue;
        std::string bucket = stream.name.substr(kStreamOfBucket.size());
        if (buckets_.have(bucket)) wanted.insert(std::move(bucket));
      }
    }
    for (const std::string& bucket : wanted) {
      if (!stopped() && !consumers_.contains(bucket)) open(bucket);
    }
  }

  void open(const std::string& bucket) {
    if (consumers_.size() >= kMostWatchedBuckets) lost(bucket, "too many others: name fewer");
    // nats-server 2.9 must not be asked for more while another client's request makes the stream.
    const auto stream = ask("STREAM.INFO", bucket);
    if (!stream || !stream->is_made) return;
    const nlohmann::json consumer{{"stream_name", fmt::format("{}{}", kStreamOfBucket, bucket)},
                                  {"config",
                                   {{"deliver_subject", hears_.heard_subject(bucket)},
                                    {"deliver_policy", "last_per_subject"},
                                    {"filter_subject", fmt::format("$KV.{}.>", bucket)},
                                    {"ack_policy", "none"},
                                    {"max_deliver", 1},
                                    {"idle_heartbeat", kBeat.count()},
                                    {"headers_only", proposes()},
                                    {"mem_storage", true},
                                    {"num_replicas", 1}}}};
    const auto made = ask("CONSUMER.CREATE", bucket, consumer.dump());
    if (!made) return;
    if (!made->created) lost(bucket, "expected the time at which its consumer was created");
    const TimePoint now = env_.now();
    locks_.keep(bucket, stream->max_age);
    consumers_[bucket] = {.created = *made->created, .created_at = now, .heard_at = now};
  }

  /// Without patterns it only proposes some.
  bool proposes() const { return request_.locks.empty(); }

  void hear() {
    constexpr int kMostMessages = 4096;
    Duration longest = kHearFor;
    for (int i = 0; i < kMostMessages && !stopped(); ++i) {
      const auto said = need(hears_.hear(longest, stop_));
      if (!said) return check_life();
      if (said->kind == nats::Message::Kind::error) {
        throw Failure(fmt::format("{}: {}", hears_.display(), printable(said->text)));
      }
      take(*said);
      longest = Duration::zero();
    }
  }

  /// A consumer ends without a word, with its stream or its server.
  void check_life() const {
    const TimePoint now = env_.now();
    for (const auto& [bucket, consumer] : consumers_) {
      if (now - consumer.heard_at > kBeat + request_.command_timeout) {
        lost(bucket, "its consumer is silent");
      }
    }
  }

  /// A message of a bucket, or a heartbeat, which comes on the consumer's own subject.
  void take(const nats::Message& said) {
    const auto delivery = nats::parse_delivery(said.reply);
    const std::string& from = delivery ? delivery->stream : said.subject;
    const std::size_t before = delivery ? kStreamOfBucket.size() : hears_.heard_subject("").size();
    const auto found = consumers_.find(from.substr(std::min(before, from.size())));
    if (found == consumers_.end()) return;
    auto& [bucket, consumer] = *found;
    consumer.heard_at = env_.now();
    const std::uint64_t sent =
        delivery ? delivery->number - 1
                 : parse_number<std::uint64_t>(nats::header_of(said.headers, "Nats-Last-Consumer"))
                       .value_or(0);
    if (sent > consumer.delivered) {
      reporter().missed(sent - consumer.delivered, "messages of NATS that did not arrive");
      lost(bucket, "messages did not arrive");
    }
    if (!delivery) return;
    consumer.delivered = delivery->number;
    const std::string subject = fmt::format("$KV.{}.", bucket);
    if (!said.subject.starts_with(subject)) return;
    const bool old = delivery->stored_at <= consumer.created;
    const Duration age =
        std::min<Duration>(consumer.created - delivery->stored_at, kLongestDuration);
    report({.bucket = bucket,
            .key = said.subject.substr(subject.size()),
            .value = said.text,
            .revision = delivery->sequence,
            .stored_at = old ? consumer.created_at - age : consumer.heard_at,
            .deleted = nats::is_deletion(said.headers),
            .old = old},
           consumer.heard_at);
  }

  void report(const NatsMessage& told, TimePoint now) {
    const std::string name = told.bucket + "/" + told.key;
    if (proposes()) {
      if (!told.deleted && sounds_like_lock(name)) reporter().proposed(generalised(name));
      return;
    }
    using NoChange = NatsLocks::NoChange;
    auto seen = locks_.take(told, now);
    if (seen) return reporter().seen(*std::move(seen));
    if (seen.error() == NoChange::no_lock) reporter().no_lock(name);
    if (seen.error() == NoChange::no_room) {
      reporter().missed(1, "more locks than are followed at once");
    }
  }

  /// Asks for a bucket's TTL first: it may have been raised meanwhile.
  void end_expired() {
    std::set<std::string> asked;
    while (const auto name = locks_.due(env_.now())) {
      const std::string bucket = name->substr(0, name->find('/'));
      if (asked.insert(bucket).second) {
        if (budget_.next(1, env_.now()) > env_.now()) return;
        const auto stream = ask("STREAM.INFO", bucket);
        if (!stream || !stream->is_made) lost(bucket, "it was removed");
        locks_.keep(bucket, stream->max_age);
      } else if (auto ended = locks_.expire(*name, env_.now())) {
        reporter().seen(*std::move(ended));
      }
    }
  }

  const NatsBuckets buckets_;
  nats::Connection asks_, hears_;
  NatsLocks locks_;
  std::map<std::string, Consumer> consumers_;  ///< by bucket
  TimePoint look_at_{};
};

}  // namespace

Made make_nats_source(const std::string& url, const Request& request) {
  if (NatsBuckets(request.locks).empty()) {
    return tl::unexpected<std::string>(
        "--locks names no lock of NATS: write BUCKET/KEY, such as locks/*");
  }
  return one_server<NatsWatch>(url, request, nats::parse_endpoint);
}

}  // namespace lockbench::watch
