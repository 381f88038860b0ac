#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "strategies/etcd/client/connection.h"
#include "watch/sources/etcd_locks.h"
#include "watch/sources/etcd_reader.h"
#include "watch/sources/patterns.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

constexpr Duration kReadFor = std::chrono::milliseconds(20);
/// The server is asked for something at least this often: a watch alone does not show that it has
/// gone silent.
constexpr Duration kHeartbeat = std::chrono::seconds(1);
/// Keys, with their values: gRPC takes 4 MB at once.
constexpr std::int64_t kPage = 250;

/// One connection's time of watching.
class EtcdWatch {
 public:
  EtcdWatch(const etcd::Endpoint& endpoint, const Request& request, Env& env, Budget& budget)
      : display_(endpoint.display()),
        request_(request),
        prefixes_(merged_prefixes(request.locks)),
        env_(env),
        budget_(budget),
        reader_(endpoint, request.command_timeout, env),
        locks_(request.locks, request.most_locks) {}

  /// Connects, and checks that it may read.
  StoreResult<void> begin(const std::stop_token& stop) {
    if (prefixes_.empty()) return reader_.connect(stop);
    for (const std::string& prefix : prefixes_) {
      if (auto page = reader_.read(prefix, prefix, 1, 0, stop); !page) {
        return tl::unexpected(std::move(page.error()));
      }
    }
    return {};
  }

  StoreResult<void> run(Reporter& reporter, const std::stop_token& stop) {
    reporter.facts(
        {.store = "etcd",
         .endpoint = display_,
         .way = "watch",
         .accuracy = Accuracy::exact,
         .waiters = "the keys of a queue; not those who wait for a single key",
         .unseen = {"whether a holder's lease was revoked or expired within the last second "
                    "of its TTL, as etcd counts in seconds"}});
    if (request_.locks.empty()) return propose(reporter, stop);
    std::int64_t revision = 0;
    for (const std::string& prefix : prefixes_) {
      auto read =
          read_all(prefix, revision, stop, [&](const EtcdEntry& entry) { locks_.put(entry); });
      if (!read) return tl::unexpected(std::move(read.error()));
      if (!*read) reporter.missed(1, "more keys than are followed at once");
    }
    if (auto opened = reader_.watch(prefixes_, revision + 1, stop); !opened) return opened;
    reporter.restored();
    for (Sighting& seen : locks_.begun(env_.now())) tell(std::move(seen), reporter);
    while (!stop.stop_requested()) {
      auto changes = reader_.next(kReadFor);
      if (!changes) return tl::unexpected(std::move(changes.error()));
      if (auto told = take(*changes, reporter, stop); !told) return told;
      if (auto asked = ask_about_leases(reporter, stop); !asked) return asked;
      if (auto alive = show_life(stop); !alive) return alive;
    }
    return {};
  }

 private:
  /// Goes through all keys from time to time.
  StoreResult<void> propose(Reporter& reporter, const std::stop_token& stop) {
    constexpr Duration kPause = std::chrono::seconds(10);
    while (!stop.stop_requested()) {
      std::int64_t revision = 0;
      auto read = read_all("", revision, stop, [&](const EtcdEntry& entry) {
        const auto place = etcd_place_of(entry);
        if (!place) return;
        const bool likely = place->shape == Shape::etcd_queue || sounds_like_lock(entry.name);
        if (likely) reporter.proposed(generalised(place->lock));
      });
      if (!read) return tl::unexpected(std::move(read.error()));
      reporter.restored();
      env_.wait(nullptr, env_.now() + kPause, stop);
    }
    return {};
  }

  /// False: there are more keys than it reads.
  template <class Take>
  StoreResult<bool> read_all(const std::string& prefix, std::int64_t& revision,
                             const std::stop_token& stop, Take take) {
    std::string from = prefix;
    // A page is one command of the budget; keys without end would be too many to follow anyway.
    for (std::uint64_t pages = 0; pages <= request_.most_locks / kPage; ++pages) {
      if (!budget_.spend_when_possible(1, env_, stop)) return true;
      auto page =
          budget_.ask(env_, [&] { return reader_.read(prefix, from, kPage, revision, stop); });
      if (!page) return tl::unexpected(std::move(page.error()));
      if (revision == 0) revision = page->revision;
      for (const EtcdEntry& entry : page->entries) take(entry);
      if (!page->more || page->entries.empty()) return true;
      from = page->entries.back().name + '\0';
    }
    return false;
  }

  void tell(Sighting seen, Reporter& reporter) {
    if (const etcd::LeaseId lease = locks_.lease_of(seen.lock);
        lease != 0 && !seen.holders.empty() && held_.size() < request_.most_locks) {
      const auto [place, added] = held_.try_emplace(seen.lock, Held{.lease = lease});
      if (!added && place->second.lease != lease) place->second = {.lease = lease};
      if (added || place->second.ask_at == TimePoint{}) due_.insert({TimePoint{}, seen.lock});
    }
    reporter.seen(std::move(seen));
  }

  StoreResult<void> take(const std::vector<EtcdChange>& changes, Reporter& reporter,
                         const std::stop_token& stop) {
    const TimePoint now = env_.now();
    for (Sighting& seen : locks_.take(changes, now)) {
      const auto before = held_.find(seen.lock);
      const bool ended =
          before != held_.end() &&
          (seen.holders.empty() || before->second.lease != locks_.lease_of(seen.lock));
      if (ended) {
        auto ending = ending_of(before->second.lease, now, stop);
        if (!ending) return tl::unexpected(std::move(ending.error()));
        seen.ended = *ending;
        due_.erase(std::pair(before->second.ask_at, seen.lock));
        held_.erase(before);
      }
      tell(std::move(seen), reporter);
    }
    reporter.missed(locks_.take_unfollowed(), "more locks than are followed at once");
    return {};
  }

  StoreResult<std::optional<Ending>> ending_of(etcd::LeaseId lease, TimePoint at,
                                               const std::stop_token& stop) {
    const auto known = locks_.ending_of(lease, at);
    if (known == Ending::released) return known;
    // Whether it was kept alive since it was last asked for, only the server knows.
    if (!budget_.spend(1, env_.now())) return std::nullopt;
    auto life = reader_.life_of(lease, stop);
    if (!life) return tl::unexpected(std::move(life.error()));
    // Only its key was deleted.
    if (*life) return std::optional(Ending::released);
    locks_.forget_lease(lease);
    return known;
  }

  /// How long the leases of holders still live.
  StoreResult<void> ask_about_leases(Reporter& reporter, const std::stop_token& stop) {
    constexpr Duration kShortest = std::chrono::milliseconds(200);
    constexpr Duration kLongest = std::chrono::seconds(2);
    while (!due_.empty() && due_.begin()->first <= env_.now()) {
      const auto [ask_at, name] = *due_.begin();
      const auto held = held_.find(name);
      // It was handed on meanwhile, and stands there again.
      if (held == held_.end() || held->second.ask_at != ask_at) {
        due_.erase(due_.begin());
        continue;
      }
      if (!budget_.spend(1, env_.now())) break;
      due_.erase(due_.begin());
      const TimePoint asked_at = env_.now();
      auto life = budget_.ask(env_, [&] { return reader_.life_of(held->second.lease, stop); });
      if (!life) return tl::unexpected(std::move(life.error()));
      const TimePoint now = env_.now();
      heard_at_ = now;
      if (!*life) continue;  // an event will tell
      locks_.lives(held->second.lease, (*life)->left, asked_at);
      held->second.ask_at = now + std::clamp((*life)->granted / 6, kShortest, kLongest);
      due_.insert({held->second.ask_at, name});
      if (auto state = locks_.state_of(name, now)) reporter.seen(*std::move(state));
    }
    return {};
  }

  StoreResult<void> show_life(const std::stop_token& stop) {
    const TimePoint now = env_.now();
    if (now - heard_at_ < kHeartbeat) return {};
    heard_at_ = now;
    budget_.owe(1);
    const std::string& prefix = prefixes_.front();
    auto page = budget_.ask(env_, [&] { return reader_.read(prefix, prefix, 1, 0, stop); });
    if (!page) return tl::unexpected(std::move(page.error()));
    return {};
  }

  struct Held {
    etcd::LeaseId lease = 0;
    TimePoint ask_at{};
  };

  const std::string display_;
  const Request& request_;
  const std::vector<std::string> prefixes_;
  Env& env_;
  Budget& budget_;
  EtcdReader reader_;
  EtcdLocks locks_;
  std::unordered_map<std::string, Held> held_;
  std::set<std::pair<TimePoint, std::string>> due_;
  TimePoint heard_at_{};
};

}  // namespace

Made make_etcd_source(const std::string& url, const Request& request) {
  return one_server<EtcdWatch>(url, request, etcd::parse_endpoint);
}

}  // namespace lockbench::watch
