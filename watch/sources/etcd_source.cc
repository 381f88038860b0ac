#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "strategies/etcd/client/channel.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/messages.h"
#include "watch/sources/key_locks.h"
#include "watch/sources/keys.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

constexpr Duration kReadFor = std::chrono::milliseconds(20);
/// Send a request at least this often: a watch alone does not show that the server is gone.
constexpr Duration kHeartbeat = std::chrono::seconds(1);
/// Keys per page, with values: a gRPC message holds at most 4 MB.
constexpr std::int64_t kPage = 250;

KeyEntry entry_of(const etcdserverpb::KeyValue& found) {
  return {.name = found.key(),
          .value = found.value(),
          .created = found.create_revision(),
          .modified = found.mod_revision(),
          .lease = found.lease()};
}

/// A connection for reading keys and leases, with a stream of key changes. Throws Failure.
class EtcdReader : public etcd::Connection {
 public:
  EtcdReader(const etcd::Endpoint& endpoint, Duration command_timeout, Env& env,
             const std::stop_token& stop)
      : Connection(endpoint, command_timeout, env), stop_(stop) {}

  /// Up to `limit` keys with the prefix, in order, from `from` on, as of that revision of the
  /// store; 0: the latest.
  etcdserverpb::RangeResponse read(const std::string& prefix, const std::string& from,
                                   std::int64_t limit, std::int64_t revision) {
    etcdserverpb::RangeRequest request;
    // A zero byte is the smallest key as `key`, and means "to the last key" as `range_end`.
    request.set_key(from.empty() ? std::string(1, '\0') : from);
    request.set_range_end(prefix.empty() ? std::string(1, '\0') : etcd::end_of_prefix(prefix));
    request.set_limit(limit);
    request.set_revision(revision);
    etcdserverpb::RangeResponse response;
    need(call(etcd::kRange, prefix, stop_, request, response));
    return response;
  }

  struct Life {
    Duration left{}, granted{};  ///< in whole seconds
    std::uint64_t term = 0;      ///< of the member's Raft leader
  };
  /// Nothing: the lease is gone.
  std::optional<Life> life_of(etcd::LeaseId lease) {
    etcdserverpb::LeaseTimeToLiveRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseTimeToLiveResponse response;
    const bool found = need(call(etcd::kLeaseTimeToLive, {}, stop_, request, response));
    if (!found || response.ttl() < 0) return std::nullopt;
    const auto seconds_of = [](std::int64_t count) {
      return std::chrono::seconds(
          std::clamp<std::int64_t>(count, 0, ceil_seconds(kLongestDuration)));
    };
    return Life{.left = seconds_of(response.ttl()),
                .granted = seconds_of(response.grantedttl()),
                .term = response.header().raft_term()};
  }

  /// Opens a stream of changes of keys with one of these prefixes, from this revision on.
  void watch(const std::vector<std::string>& prefixes, std::int64_t from) {
    need(connect(stop_));
    // It never has another link than gRPC's.
    changes_ = static_cast<etcd::GrpcLink&>(*link()).make_watch(token(), Duration::max());
    etcd::WatchStream& stream = *changes_;
    const CommandInfo info = info_of({etcd::kWatch.name, {}, stop_});
    env().before_command(info);
    const etcd::Limits limits{stop_};
    bool open = stream.begin(limits);
    for (const std::string& prefix : prefixes) {
      etcdserverpb::WatchRequest request;
      etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
      create.set_key(prefix.empty() ? std::string(1, '\0') : prefix);
      create.set_range_end(prefix.empty() ? std::string(1, '\0') : etcd::end_of_prefix(prefix));
      create.set_start_revision(from);
      open = open && stream.write(request, limits);
    }
    env().after_command(info, open ? CommandEnd::answered : CommandEnd::lost);
    if (!open) ended("it could not be begun");
    stream.begin_read();
  }

  /// After watch(): the next changes, in order of revision; empty after `longest`. Keep that short:
  /// a stop does not end the wait.
  std::vector<KeyChange> next(Duration longest) {
    constexpr Duration kToSayWhy = std::chrono::seconds(1);
    etcd::WatchStream& stream = *changes_;
    if (!stream.has_read(longest)) return {};
    if (!stream.end_read()) {
      const grpc::Status status = stream.finish_within(kToSayWhy);
      if (etcd::verdict_of(status) == etcd::Verdict::logged_out) forget_token();
      ended(printable(status.error_message()));
    }
    const etcdserverpb::WatchResponse& response = stream.response();
    if (response.canceled()) {
      ended(response.compact_revision() > 0 ? "its revisions are compacted"
                                            : printable(response.cancel_reason()));
    }
    std::vector<KeyChange> changes;
    for (const auto& event : response.events()) {
      changes.push_back({.deleted = event.type() == etcdserverpb::WatchResponse::Event::DELETE,
                         .entry = entry_of(event.kv())});
    }
    stream.begin_read();
    return changes;
  }

 private:
  [[noreturn]] void ended(const std::string& why) {
    throw Failure(fail(StoreError::Kind::unanswered, "a watch ended: " + why).value().message);
  }

  const std::stop_token& stop_;
  std::unique_ptr<etcd::WatchStream> changes_;  ///< null: no stream is open
};

class EtcdWatch : public Watching {
 public:
  EtcdWatch(const etcd::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        prefixes_(merged_prefixes(request_.locks)),
        reader_(endpoint, request_.command_timeout, env_, stop_),
        locks_(request_, request_.most_locks) {}

  void begin() {
    if (prefixes_.empty()) need(reader_.connect(stop_));
    for (const std::string& prefix : prefixes_) reader_.read(prefix, prefix, 1, 0);
  }

  void run() {
    reporter().facts(
        {.store = "etcd",
         .endpoint = reader_.display(),
         .way = "watch",
         .accuracy = Accuracy::exact,
         .waiters = "the keys of a queue; clients that wait for a single key are not seen",
         .unseen = {"whether a holder's lease was revoked or expired within the last second "
                    "of its TTL, as etcd counts in seconds"}});
    if (request_.locks.empty()) return propose();
    std::int64_t revision = 0;
    for (const std::string& prefix : prefixes_) {
      const bool all =
          read_all(prefix, revision, [&](const KeyEntry& entry) { locks_.put(entry, env_.now()); });
      if (!all) reporter().missed(1, "more keys than are followed at once");
    }
    reader_.watch(prefixes_, revision + 1);
    reporter().restored();
    for (Sighting& seen : locks_.begun(env_.now())) follow(std::move(seen));
    while (!stopped()) {
      take(reader_.next(kReadFor));
      reporter().seen(locks_.expired(env_.now()));
      ask_about_leases();
      show_life();
    }
  }

 private:
  /// Scans all keys periodically for names that look like locks.
  void propose() {
    constexpr Duration kPause = std::chrono::seconds(10);
    while (!stopped()) {
      std::int64_t revision = 0;
      read_all("", revision, [&](const KeyEntry& entry) {
        const auto place = etcd_place_of(entry);
        if (!place) return;
        const bool likely = place->shape == Shape::etcd_queue || sounds_like_lock(entry.name);
        if (likely) reporter().proposed(generalised(place->lock));
      });
      reporter().restored();
      env_.wait(nullptr, env_.now() + kPause, stop_);
    }
  }

  /// False: there were more keys than most_locks.
  template <class Take>
  bool read_all(const std::string& prefix, std::int64_t& revision, Take take) {
    std::string from = prefix;
    // Bounded: further keys could not be followed anyway. Each page costs one command of the
    // budget.
    for (std::uint64_t pages = 0; pages <= request_.most_locks / kPage; ++pages) {
      if (!spend(1)) return true;
      const auto page = timed([&] { return reader_.read(prefix, from, kPage, revision); });
      if (revision == 0) revision = page.header().revision();
      for (const etcdserverpb::KeyValue& found : page.kvs()) take(entry_of(found));
      if (!page.more() || page.kvs().empty()) return true;
      from = page.kvs().rbegin()->key() + '\0';
    }
    return false;
  }

  void follow(Sighting seen) {
    if (const etcd::LeaseId lease = locks_.lease_of(seen.lock);
        lease != 0 && !seen.holders.empty() && held_.size() < request_.most_locks) {
      const auto [place, added] = held_.try_emplace(seen.lock, Held{.lease = lease});
      if (!added && place->second.lease != lease) place->second = {.lease = lease};
      if (added || place->second.ask_at == TimePoint{}) due_.insert({TimePoint{}, seen.lock});
    }
    reporter().seen(std::move(seen));
  }

  void take(const std::vector<KeyChange>& changes) {
    const TimePoint now = env_.now();
    for (Sighting& seen : locks_.take(changes, now)) {
      const auto before = held_.find(seen.lock);
      const bool ended =
          before != held_.end() &&
          (seen.holders.empty() || before->second.lease != locks_.lease_of(seen.lock));
      if (ended) {
        seen.ended = ending_of(before->second.lease, now);
        due_.erase(std::pair(before->second.ask_at, seen.lock));
        held_.erase(before);
      }
      follow(std::move(seen));
    }
    reporter().missed(locks_.take_unfollowed(), "more locks than are followed at once");
    for (const std::string& key : locks_.take_no_locks()) reporter().no_lock(key);
  }

  std::optional<Ending> ending_of(etcd::LeaseId lease, TimePoint at) {
    const auto known = locks_.ending_of(lease, at);
    if (known == Ending::released) return known;
    // The lease may have been renewed since the last look; only the server knows.
    if (!budget_.spend(1, env_.now())) return std::nullopt;
    // The lease still lives, so only the key was deleted.
    if (reader_.life_of(lease)) return Ending::released;
    locks_.forget_lease(lease);
    return known;
  }

  /// Asks for the remaining time of the holders' leases, as far as the budget allows.
  void ask_about_leases() {
    constexpr Duration kShortest = std::chrono::milliseconds(200);
    constexpr Duration kLongest = std::chrono::seconds(2);
    while (!due_.empty() && due_.begin()->first <= env_.now()) {
      const auto [ask_at, name] = *due_.begin();
      const auto held = held_.find(name);
      // The lock was handed on meanwhile and has another entry.
      if (held == held_.end() || held->second.ask_at != ask_at) {
        due_.erase(due_.begin());
        continue;
      }
      if (!budget_.spend(1, env_.now())) break;
      due_.erase(due_.begin());
      const TimePoint asked_at = env_.now();
      const auto life = timed([&] { return reader_.life_of(held->second.lease); });
      const TimePoint now = env_.now();
      heard_at_ = now;
      if (!life) continue;  // the watch will report the deletion
      locks_.lives(held->second.lease, life->left, asked_at, life->term);
      held->second.ask_at = now + std::clamp(life->granted / 6, kShortest, kLongest);
      due_.insert({held->second.ask_at, name});
      if (auto state = locks_.state_of(name, now)) reporter().seen(*std::move(state));
    }
  }

  void show_life() {
    const TimePoint now = env_.now();
    if (now - heard_at_ < kHeartbeat) return;
    heard_at_ = now;
    budget_.owe(1);
    timed([&] { return reader_.read(prefixes_.front(), prefixes_.front(), 1, 0); });
  }

  struct Held {
    etcd::LeaseId lease = 0;
    TimePoint ask_at{};
  };

  const std::vector<std::string> prefixes_;
  EtcdReader reader_;
  KeyLocks locks_;
  std::unordered_map<std::string, Held> held_;
  std::set<std::pair<TimePoint, std::string>> due_;
  TimePoint heard_at_{};
};

}  // namespace

Made make_etcd_source(const std::string& url, const Request& request) {
  return one_server<EtcdWatch>(url, request, etcd::parse_endpoint);
}

}  // namespace lockbench::watch
