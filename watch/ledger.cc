#include "watch/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "watch/books.h"
#include "watch/scan.h"

namespace lockbench::watch {
namespace {

constexpr std::size_t kMostEndpoints = 256, kMostProposals = 50;
/// Records read under one lock of the mutex: less than a millisecond, as sources wait meanwhile.
constexpr std::size_t kChunk = 4096;

/// Index of dispersion of counts; nothing for too few seconds or events.
std::optional<double> dispersion_of(const std::vector<std::uint32_t>& counts) {
  constexpr std::size_t kFewestSeconds = 10;
  if (counts.size() < kFewestSeconds) return std::nullopt;
  double sum = 0, squares = 0;
  for (const std::uint32_t count : counts) {
    sum += count;
    squares += static_cast<double>(count) * count;
  }
  const auto n = static_cast<double>(counts.size());
  const double mean = sum / n;
  if (mean <= 0) return std::nullopt;
  return (squares - n * mean * mean) / (n - 1) / mean;
}

}  // namespace

struct Ledger::State {
  struct Endpoint {
    SourcePicture picture;
    TimePoint sees_since{};
    TimePoint blind_since{};
    TimePoint seen_until = TimePoint::max();
    std::uint32_t epoch = 0;  ///< counts its gaps
    Distinct no_locks{};

    double blind_for(TimePoint now) const {
      return picture.sees ? 0 : seconds(std::max(now - blind_since, Duration::zero()));
    }
    double blind_seconds(TimePoint now) const { return picture.blind_seconds + blind_for(now); }
    bool had_gaps() const { return !picture.sees || epoch > 0 || !picture.facts.progress.empty(); }
    /// How well it has seen so far, all in all.
    Accuracy accuracy() const {
      const bool missed_any = had_gaps() || picture.missed > 0;
      return missed_any ? std::max(picture.facts.accuracy, Accuracy::at_least)
                        : picture.facts.accuracy;
    }
    /// Whether it sees, and no gap ended less than `time` ago.
    bool sees_for(Duration time, TimePoint now) const {
      return picture.sees && (epoch == 0 || now - sees_since >= time);
    }
    /// The latest time of which the lock's state is known: ages count until then.
    TimePoint known_until(const LockRecord& record, TimePoint now) const {
      if (!picture.sees || record.epoch != epoch) return std::min(now, blind_since);
      return std::min(now, seen_until);
    }
  };

  State(LedgerOptions given, Families by_name)
      : options(std::move(given)),
        families(std::move(by_name)),
        salt(options.salt.empty() ? random_salt() : options.salt),
        locks(std::max<std::uint64_t>(1, options.most_locks)) {}

  // Everything here requires `mutex`; only for_each() takes it by itself.
  std::mutex mutex;
  const LedgerOptions options;
  const Families families;
  const std::string salt;
  std::vector<Endpoint> endpoints;
  LockTable locks;
  std::vector<FamilyBook> books;
  std::set<std::string> families_known;  ///< on whichever endpoint
  FindingLog findings;
  Histories histories{64};
  std::set<std::string> proposals;
  Distinct unfollowed, owners;
  std::optional<TimePoint> began;
  TimePoint latest{};
  // For the workload.
  loadgen::HistogramSnapshot ttl;
  PerSecond acquired{3600};
  std::uint64_t held = 0, waiting = 0, most_at_once = 0, shared = 0;
  bool queued = false;

  std::size_t endpoint_of(const std::string& name) {
    const auto found = std::ranges::find(
        endpoints, name,
        [](const Endpoint& one) -> const std::string& { return one.picture.facts.endpoint; });
    if (found != endpoints.end()) return static_cast<std::size_t>(found - endpoints.begin());
    // Endpoints beyond the bound share the last place.
    if (endpoints.size() == kMostEndpoints) return kMostEndpoints - 1;
    endpoints.emplace_back().picture.facts.endpoint = name;
    return endpoints.size() - 1;
  }

  std::uint32_t book_of(const SourceFacts& source, const std::string& lock, TimePoint at) {
    std::string family = families.family_of(lock);
    if (families_known.size() < options.most_families) {
      families_known.insert(family);
    } else if (!families_known.contains(family)) {
      family = Families::kOther;
    }
    const auto found = std::ranges::find_if(books, [&](const FamilyBook& book) {
      return book.known().store == source.store && book.known().endpoint == source.endpoint &&
             book.known().family == family;
    });
    if (found != books.end()) return static_cast<std::uint32_t>(found - books.begin());
    books.emplace_back(source.store, source.endpoint, family, at);
    return static_cast<std::uint32_t>(books.size() - 1);
  }

  /// Whether the lock was declared to end by expiry only.
  bool is_never_released(const std::string& lock) const {
    return std::ranges::any_of(options.never_released, [&](const std::string& pattern) {
      return glob_matches(pattern, lock);
    });
  }

  std::optional<std::size_t> place_of(std::size_t endpoint, const Sighting& sighting) {
    const std::uint64_t key = hash_of(fmt::format("{}\n{}", endpoint, sighting.lock), salt);
    if (const auto place = locks.find(key)) return place;
    // Do not follow keys that are free and do not change: there may be many.
    const bool idle = sighting.holders.empty() && sighting.changes == 0 && !sighting.ended &&
                      sighting.waiters.value_or(0) == 0 &&
                      (!sighting.waiting || sighting.waiting->empty());
    if (idle) return std::nullopt;
    const auto place = locks.add(key, sighting.at);
    if (!place) {
      unfollowed.add(key);
      return std::nullopt;
    }
    histories.forget(*place);
    LockRecord& record = locks.at(*place);
    record.name = sighting.lock.substr(0, Families::kLongestName);
    record.endpoint = static_cast<std::uint16_t>(endpoint);
    record.never_released = is_never_released(sighting.lock);
    record.family = book_of(endpoints[endpoint].picture.facts, sighting.lock, sighting.at);
    books[record.family].lock_added(key, locks.forgot_any());
    return place;
  }

  void take(std::size_t place, Sighting sighting) {
    LockRecord& record = locks.at(place);
    FamilyBook& book = books[record.family];
    const Endpoint& endpoint = endpoints[record.endpoint];
    const std::uint64_t held_before = record.holders.size(), waiting_before = record.waiting;
    if (sighting.waiting || sighting.waiters) book.waits_known();
    queued = queued || (sighting.waiting && sighting.waiting->size() > 1);
    const Judgement judgement{.salt = salt,
                              .accuracy = endpoint.picture.facts.accuracy,
                              .epoch = endpoint.epoch,
                              .sees_since = endpoint.sees_since,
                              .changes_per_holding = book.changes_per_holding(),
                              .shortest_ttl = book.shortest_ttl(),
                              .never_released = record.never_released || book.is_never_released(),
                              .shows_owners = options.shows_owners};
    const Happenings happenings = derive(record, std::move(sighting), judgement);
    for (const Happening& event : happenings.list) {
      const bool granted = event.kind == Happening::Kind::granted;
      if (!granted && event.kind != Happening::Kind::named) continue;
      if (event.owner != kUnnamed) owners.add(event.owner);
      if (!event.counted) continue;
      if (event.ttl) ttl.record(*event.ttl);
      if (!granted) continue;
      acquired.add(event.at);
      shared += event.shared ? 1 : 0;
    }
    acquired.add(record.at, happenings.unseen_holdings);
    add(record.counts, happenings);
    record.counts.most_waiting = std::max(record.counts.most_waiting, record.waiting);
    book.take(happenings, record, held_before, waiting_before);
    held += record.holders.size() - held_before;
    waiting += record.waiting - waiting_before;
    most_at_once = std::max(most_at_once, held + waiting);
    if (happenings.list.empty() && record.waiting == waiting_before) return;
    const auto hurt = [&](std::size_t other) {
      const LockRecord& lock = locks.at(other);
      return hurt_of(figures_of(lock, latest, false), lock.waiting);
    };
    if (auto* const history = histories.find_or_admit(place, hurt)) {
      Histories::add(*history, happenings, record, began.value_or(record.at));
    }
  }

  /// Whether the lock was held or waited for before an outage and its source no longer mentions it:
  /// it was freed meanwhile.
  bool was_freed_unseen(const LockRecord& record, TimePoint now) const {
    // After an outage, a source needs a while to look at all locks again.
    constexpr Duration kAllAreTold = std::chrono::minutes(1);
    const Endpoint& source = endpoints[record.endpoint];
    return !record.is_free() && record.epoch != source.epoch && source.picture.sees &&
           now - source.sees_since >= kAllAreTold;
  }

  void free_unseen(std::size_t place, TimePoint now) {
    // The first sighting after an outage ends no holding.
    Sighting free;
    free.lock = locks.at(place).name;
    free.at = now;
    take(place, std::move(free));
    // If the lock was held all along and the source says so late, the next sighting must not count
    // as a new holding.
    locks.at(place).known = false;
  }

  /// Calls `look` for the first `places` locks. Takes the mutex for kChunk of them at a time, so
  /// that no source waits for long.
  template <class Look>
  void for_each(std::size_t places, const Look& look) {
    for (std::size_t from = 0; from < places; from += kChunk) {
      const std::lock_guard guard(mutex);
      for (std::size_t place = from; place < std::min(from + kChunk, places); ++place) {
        look(place, locks.at(place));
      }
    }
  }

  /// Since when all sources are blind; nothing if one sees.
  std::optional<TimePoint> blind_since() const {
    std::optional<TimePoint> since;
    for (const Endpoint& endpoint : endpoints) {
      if (endpoint.picture.sees) return std::nullopt;
      since = std::max(since.value_or(endpoint.blind_since), endpoint.blind_since);
    }
    return since;
  }

  /// The book's figures, with the accuracy of its source.
  FamilyPicture picture_of(FamilyBook& book, TimePoint now) {
    const Endpoint& endpoint = endpoints[endpoint_of(book.known().endpoint)];
    const SourcePicture& source = endpoint.picture;
    FamilyPicture picture =
        book.picture(now, source.facts.accuracy, source.missed, endpoint.had_gaps());
    picture.source = source.facts.way;
    picture.blind = !endpoint.sees_for(book.longest_ttl(), now);
    return picture;
  }

  Duration seen_for(TimePoint now) const {
    if (!began) return {};
    double least_blind = endpoints.empty() ? 0 : 1e18;
    for (const Endpoint& endpoint : endpoints) {
      least_blind = std::min(least_blind, endpoint.blind_seconds(now));
    }
    const double seen = std::max(0.0, seconds(now - *began) - least_blind);
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seen));
  }

  void begin(TimePoint at) {
    if (!began) began = at;
    latest = std::max(latest, at);
  }
};

Ledger::Ledger(LedgerOptions options, Families families)
    : state_(std::make_unique<State>(std::move(options), std::move(families))) {}

Ledger::~Ledger() = default;

void Ledger::begin(TimePoint at) {
  const std::lock_guard guard(state_->mutex);
  state_->begin(at);
}

void Ledger::facts(const SourceFacts& facts) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  state.endpoints[state.endpoint_of(facts.endpoint)].picture.facts = facts;
}

void Ledger::seen(const std::string& endpoint, Sighting sighting) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  const std::size_t index = state.endpoint_of(endpoint);
  state.begin(sighting.at);
  State::Endpoint& source = state.endpoints[index];
  // A source sees from the start, also before the first lock is taken.
  if (source.sees_since == TimePoint{}) source.sees_since = *state.began;
  if (const auto place = state.place_of(index, sighting)) {
    state.take(*place, std::move(sighting));
  }
}

void Ledger::proposed(std::string pattern) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  if (state.proposals.size() < kMostProposals) state.proposals.insert(std::move(pattern));
}

void Ledger::blind(const std::string& endpoint, TimePoint at, std::string reason) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  State::Endpoint& source = state.endpoints[state.endpoint_of(endpoint)];
  state.begin(at);
  if (source.picture.sees) {
    source.blind_since = at;
    ++source.picture.outages;
  }
  source.picture.sees = false;
  source.picture.blind_reason = std::move(reason);
}

void Ledger::seen_until(const std::string& endpoint, TimePoint at) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  state.endpoints[state.endpoint_of(endpoint)].seen_until = at;
}

void Ledger::sees(const std::string& endpoint, TimePoint at) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  State::Endpoint& source = state.endpoints[state.endpoint_of(endpoint)];
  state.begin(at);
  source.sees_since = at;
  source.seen_until = TimePoint::max();
  if (source.picture.sees) return;
  if (const auto since = state.blind_since()) state.acquired.leave_out(*since, at);
  source.picture.blind_seconds += seconds(std::max(at - source.blind_since, Duration::zero()));
  source.picture.sees = true;
  ++source.epoch;
}

void Ledger::missed(const std::string& endpoint, std::uint64_t changes, std::string reason) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  SourcePicture& picture = state.endpoints[state.endpoint_of(endpoint)].picture;
  picture.missed += changes;
  picture.missed_reason = std::move(reason);
}

void Ledger::no_lock(const std::string& endpoint, const std::string& key) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  State::Endpoint& source = state.endpoints[state.endpoint_of(endpoint)];
  source.no_locks.add(hash_of(key, state.salt));
  if (source.picture.a_no_lock.empty()) {
    source.picture.a_no_lock = key.substr(0, Families::kLongestName);
  }
}

Picture Ledger::read(TimePoint now) {
  State& state = *state_;
  Picture picture;
  std::vector<LongFrom> bounds;
  std::size_t places = 0;
  {
    const std::lock_guard guard(state.mutex);
    picture.at = now;
    if (state.began) picture.watched = std::max(now - *state.began, Duration::zero());
    for (const State::Endpoint& endpoint : state.endpoints) {
      SourcePicture& source = picture.sources.emplace_back(endpoint.picture);
      source.facts.accuracy = endpoint.accuracy();
      source.blind_for = endpoint.blind_for(now);
      source.blind_seconds = endpoint.blind_seconds(now);
      source.no_locks = endpoint.no_locks.count();
    }
    for (FamilyBook& book : state.books) {
      picture.families.push_back(state.picture_of(book, now));
      bounds.push_back(long_from(book, state.options));
    }
    picture.proposals.assign(state.proposals.begin(), state.proposals.end());
    picture.locks_unfollowed = state.unfollowed.count();
    places = state.locks.size();
  }
  Scan scan(std::move(bounds));
  const auto known_until = [&](const LockRecord& record) {
    return state.endpoints[record.endpoint].known_until(record, now);
  };
  state.for_each(places, [&](std::size_t place, LockRecord& record) {
    // The family is newer than the picture.
    if (record.family >= picture.families.size()) return;
    FamilyPicture& family = picture.families[record.family];
    if (state.was_freed_unseen(record, now)) {
      family.held_now -= record.holders.size();
      if (family.waiting_now) *family.waiting_now -= record.waiting;
      state.free_unseen(place, now);
    }
    scan.look(place, record, family, state.books[record.family], known_until(record));
  });
  {
    const std::lock_guard guard(state.mutex);
    for (std::size_t i = 0; i < picture.families.size(); ++i) {
      const FamilyPicture& known = state.books[i].known();
      picture.families[i].held_long = known.held_long;
      picture.families[i].renewals_stopped = known.renewals_stopped;
      picture.families[i].latest_lock = known.latest_lock;
    }
    for (const std::size_t place : scan.worst()) {
      const LockRecord& record = state.locks.at(place);
      if (record.family >= picture.families.size()) continue;
      const TimePoint until = known_until(record);
      LockPicture& lock = picture.worst.emplace_back(picture_of(
          record, picture.families[record.family], scan.is_held_long(record, until), until));
      lock.endpoint = state.endpoints[record.endpoint].picture.facts.endpoint;
      if (const auto* const history = state.histories.find(place)) {
        lock.history = {history->begin(), history->end()};
      }
    }
  }
  for (FamilyPicture& family : picture.families) {
    family.no_ttl = family.without_ttl + family.without_ttl_now;
  }
  const std::lock_guard guard(state.mutex);
  picture.findings = state.findings.take(findings_of(picture), now, state.began.value_or(now));
  return picture;
}

Usage Ledger::usage(TimePoint now) {
  State& state = *state_;
  Usage usage;
  std::size_t places = 0;
  {
    const std::lock_guard guard(state.mutex);
    usage.watched = state.seen_for(now);
    usage.accuracy = Accuracy::exact;
    for (FamilyBook& book : state.books) {
      const FamilyPicture family = state.picture_of(book, now);
      usage.acquisitions += family.acquisitions;
      usage.locks += family.locks;
      if (family.hold.any()) usage.hold.merge(family.holds);
      usage.waits_known = usage.waits_known || family.waiting_now;
      usage.accuracy = std::max(usage.accuracy, family.sight);
    }
    usage.owners = state.owners.count();
    usage.ttl = state.ttl;
    usage.most_at_once = state.most_at_once;
    usage.shared = state.shared;
    usage.queued = state.queued;
    if (const auto since = state.blind_since()) state.acquired.leave_out(*since, now);
    if (state.began) usage.dispersion = dispersion_of(state.acquired.finished(now, *state.began));
    places = state.locks.size();
  }
  state.for_each(places, [&](std::size_t /*place*/, LockRecord& record) {
    const std::uint64_t acquisitions = record.counts.acquisitions;
    if (acquisitions > 0) usage.by_lock.push_back(acquisitions);
  });
  return usage;
}

}  // namespace lockbench::watch
