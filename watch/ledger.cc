#include "watch/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "watch/ledger_state.h"

namespace lockbench::watch {
namespace {

constexpr std::size_t kMostEndpoints = 256, kMostProposals = 50;

}  // namespace

double hurt_of(const LockRecord& record, TimePoint now, bool held_long) {
  const Counts& counts = record.counts;
  const auto times = [](double weight, std::uint64_t count) {
    return weight * static_cast<double>(count);
  };
  double hurt = times(20, counts.owner_changed) + times(10, counts.expired_while_held) +
                times(10, counts.taken_over) + times(5, counts.session_lost) +
                times(2, counts.without_ttl);
  if (record.is_leak(now)) hurt += 20;
  if (record.renewal_stopped(now)) hurt += 20;
  if (held_long) hurt += 20;
  hurt += times(1, record.waiting);
  // Among those that do not hurt, the busy ones.
  hurt += times(1e-3, counts.most_waiting) + times(1e-6, counts.acquisitions);
  return hurt;
}

std::size_t Ledger::State::endpoint_of(const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  // More share the last one.
  if (names.size() == kMostEndpoints) return kMostEndpoints - 1;
  names.push_back(name);
  endpoints.emplace_back().picture.facts.endpoint = name;
  return names.size() - 1;
}

std::uint32_t Ledger::State::book_of(const std::string& store, const std::string& lock,
                                     TimePoint at) {
  const auto find = [&](const std::string& family) {
    return std::find_if(books.begin(), books.end(), [&](const FamilyBook& book) {
      return book.store() == store && book.family() == family;
    });
  };
  std::string family = families.family_of(lock);
  auto found = find(family);
  if (found == books.end() && books.size() >= options.most_families) {
    family = Families::kOther;
    found = find(family);
  }
  if (found != books.end()) return static_cast<std::uint32_t>(found - books.begin());
  books.emplace_back(store, family, at);
  return static_cast<std::uint32_t>(books.size() - 1);
}

std::optional<std::size_t> Ledger::State::place_of(std::size_t endpoint, const Sighting& sighting) {
  const std::uint64_t key = hash_of(fmt::format("{}\n{}", endpoint, sighting.lock), salt);
  if (const auto place = locks.find(key)) return place;
  // Keys that are free and do not change are many, and tell nothing.
  const bool idle = sighting.holders.empty() && sighting.changes == 0 && !sighting.ended &&
                    sighting.waiters.value_or(0) == 0 &&
                    (!sighting.waiting || sighting.waiting->empty());
  if (idle) return std::nullopt;
  const auto place = locks.add(key, sighting.at);
  if (!place) {
    unfollowed.add(key);
    return std::nullopt;
  }
  details.forget(*place);
  LockRecord& record = locks.at(*place);
  record.name = sighting.lock.substr(0, Families::kLongestName);
  record.endpoint = static_cast<std::uint16_t>(endpoint);
  record.family = book_of(endpoints[endpoint].picture.facts.store, sighting.lock, sighting.at);
  books[record.family].lock_added(key, locks.forgot_any());
  return place;
}

void Ledger::State::take(std::size_t place, Sighting sighting) {
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
                            .changes_per_holding = book.changes_per_holding()};
  const Happenings happenings = derive(record, std::move(sighting), judgement);
  for (const Happening& event : happenings.list) {
    if (event.kind != Moment::Kind::granted) continue;
    owners.add(event.owner);
    if (!event.counted) continue;
    acquired.add(event.at);
    shared += event.shared ? 1 : 0;
    if (event.ttl) ttl.record(*event.ttl);
  }
  acquired.add(record.at, happenings.unseen_holdings);
  add(record.counts, happenings);
  record.counts.most_waiting = std::max(record.counts.most_waiting, record.waiting);
  book.take(happenings, record, held_before, waiting_before);
  held += record.holders.size() - held_before;
  waiting += record.waiting - waiting_before;
  most_at_once = std::max(most_at_once, held + waiting);
  keep(place, happenings, record.waiting != waiting_before);
}

void Ledger::State::keep(std::size_t place, const Happenings& happenings, bool queue_changed) {
  if (happenings.list.empty() && !queue_changed) return;
  const auto hurt = [&](std::size_t other) {
    return other >= locks.size() ? 0 : hurt_of(locks.at(other), latest, false);
  };
  if (LockDetails* const kept = details.find_or_admit(place, hurt)) {
    kept->take(happenings, locks.at(place), queue_changed);
  }
}

bool Ledger::State::was_freed_unseen(const LockRecord& record, TimePoint now) const {
  // A source looks at one lock after the other, which takes a while.
  constexpr Duration kAllAreTold = std::chrono::minutes(1);
  const Endpoint& source = endpoints[record.endpoint];
  return !record.is_free() && record.epoch != source.epoch && source.picture.sees &&
         now - source.sees_since >= kAllAreTold;
}

void Ledger::State::free_unseen(std::size_t place, TimePoint now) {
  // The first sighting after an outage ends no holding.
  Sighting free;
  free.lock = locks.at(place).name;
  free.at = now;
  take(place, std::move(free));
  // Nor does the next one begin any, if the source tells only then that it was held all the time.
  locks.at(place).known = false;
}

std::optional<TimePoint> Ledger::State::blind_since() const {
  std::optional<TimePoint> since;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.picture.sees) return std::nullopt;
    since = std::max(since.value_or(endpoint.blind_since), endpoint.blind_since);
  }
  return since;
}

Ledger::Ledger(LedgerOptions options, Families families)
    : state_(std::make_unique<State>(options, std::move(families))) {}

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
  Endpoint& source = state.endpoints[index];
  if (source.sees_since == TimePoint{}) source.sees_since = sighting.at;
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
  Endpoint& source = state.endpoints[state.endpoint_of(endpoint)];
  state.begin(at);
  if (source.picture.sees) source.blind_since = at;
  source.picture.sees = false;
  source.picture.blind_reason = std::move(reason);
}

void Ledger::sees(const std::string& endpoint, TimePoint at) {
  State& state = *state_;
  const std::lock_guard guard(state.mutex);
  Endpoint& source = state.endpoints[state.endpoint_of(endpoint)];
  state.begin(at);
  source.sees_since = at;
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

}  // namespace lockbench::watch
