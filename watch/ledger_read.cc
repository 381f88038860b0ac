#include <algorithm>
#include <array>
#include <utility>

#include "watch/findings.h"
#include "watch/ledger.h"
#include "watch/ledger_state.h"

namespace lockbench::watch {
namespace {

/// Records that are looked at while sources wait: less than a millisecond.
constexpr std::size_t kChunk = 4096;
/// Locks in a picture.
constexpr std::size_t kMostWorst = 20;

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

/// A holding longer than this is long, by family; nothing: too few have ended to tell.
std::vector<std::optional<Duration>> long_from(const std::vector<FamilyBook>& books,
                                               const LedgerOptions& options) {
  constexpr std::uint64_t kFewest = 20;
  constexpr int kTimesP99 = 10;
  constexpr Duration kNeverLong = std::chrono::seconds(1);
  std::vector<std::optional<Duration>> bounds;
  for (const FamilyBook& book : books) {
    std::optional<Duration> bound = options.held_longer;
    const loadgen::HistogramSnapshot& hold = book.figures().hold;
    if (!bound && hold.count() >= kFewest) {
      bound = std::max(kTimesP99 * hold.percentile(0.99), kNeverLong);
    }
    bounds.push_back(bound);
  }
  return bounds;
}

/// For how long the one that began first has held, or waited.
template <class Parties>
std::optional<Duration> longest_of(const Parties& parties, TimePoint now) {
  std::optional<Duration> longest;
  for (const auto& party : parties) {
    const Duration lasted = std::max(now - party.since, Duration::zero());
    longest = longest ? std::max(*longest, lasted) : lasted;
  }
  return longest;
}

void raise(std::optional<Duration>& longest, const std::optional<Duration>& one) {
  if (one && (!longest || *one > *longest)) longest = one;
}

/// What only the locks themselves tell of their families, and which hurt most.
class Scan {
 public:
  Scan(TimePoint now, std::vector<std::optional<Duration>> bounds)
      : now_(now), bounds_(std::move(bounds)), most_waiting_(bounds_.size()) {}

  void look(std::size_t place, const LockRecord& record, std::vector<FamilyPicture>& families) {
    Figures& figures = families[record.family].figures;
    const bool is_long = is_held_long(record);
    if (!record.is_free()) {
      raise(figures.oldest_hold, longest_of(record.holders, now_));
      raise(figures.oldest_wait, longest_of(record.waiters, now_));
      figures.without_ttl_now += record.is_leak(now_) ? 1 : 0;
      figures.held_long_now += is_long ? 1 : 0;
      figures.renewal_stopped_now += record.renewal_stopped(now_) ? 1 : 0;
      if (record.waiting > most_waiting_[record.family]) {
        most_waiting_[record.family] = record.waiting;
        families[record.family].most_waited_for = record.name;
      }
    }
    keep(place, hurt_of(record, now_, is_long));
  }

  bool is_held_long(const LockRecord& record) const {
    const auto held = longest_of(record.holders, now_);
    const auto& bound = bounds_[record.family];
    return held && bound && *held > *bound;
  }

  /// Their places, the worst first.
  std::vector<std::size_t> worst() {
    std::sort(worst_.begin(), worst_.end(), std::greater<>());
    std::vector<std::size_t> places;
    for (const auto& [hurt, place] : worst_) places.push_back(place);
    return places;
  }

 private:
  /// A heap of the worst, the least of them on top.
  void keep(std::size_t place, double hurt) {
    if (worst_.size() == kMostWorst) {
      if (hurt <= worst_.front().first) return;
      std::pop_heap(worst_.begin(), worst_.end(), std::greater<>());
      worst_.pop_back();
    }
    worst_.emplace_back(hurt, place);
    std::push_heap(worst_.begin(), worst_.end(), std::greater<>());
  }

  const TimePoint now_;
  const std::vector<std::optional<Duration>> bounds_;
  std::vector<std::uint64_t> most_waiting_;
  std::vector<std::pair<double, std::size_t>> worst_;
};

LockPicture picture_of(const LockRecord& record, const LockDetails* details,
                       const FamilyPicture& family, TimePoint now) {
  LockPicture picture{
      .name = record.name, .store = family.store, .family = family.family, .shape = record.shape};
  Figures& figures = picture.figures;
  static_cast<Counts&>(figures) = record.counts;
  figures.held_now = record.holders.size();
  figures.waiting_now = record.waiting;
  figures.without_ttl_now = record.is_leak(now) ? 1 : 0;
  figures.renewal_stopped_now = record.renewal_stopped(now) ? 1 : 0;
  figures.oldest_hold = longest_of(record.holders, now);
  figures.oldest_wait = longest_of(record.waiters, now);
  figures.waits_known = family.figures.waits_known;
  figures.accuracy = family.figures.accuracy;
  if (!record.holders.empty()) picture.holder = shown_hash(record.holders.front().owner);
  if (record.expiry) picture.ttl_left = std::max(*record.expiry - now, Duration::zero());
  if (record.renewals > 1) picture.renewal_interval = record.renewal_interval;
  if (details == nullptr) return picture;
  figures.hold = details->hold;
  figures.wait = details->wait;
  figures.smallest_margin = details->smallest_margin;
  picture.history = details->moments();
  return picture;
}

}  // namespace

FamilyPicture Ledger::State::picture_of(FamilyBook& book, TimePoint now) const {
  Accuracy worst = Accuracy::exact;
  bool missed = false;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.picture.facts.store != book.store()) continue;
    worst = std::max(worst, endpoint.picture.facts.accuracy);
    missed = missed || endpoint.picture.missed > 0;
  }
  return book.picture(now, worst, missed);
}

Duration Ledger::State::seen_for(TimePoint now) const {
  if (!began) return {};
  double least_blind = endpoints.empty() ? 0 : 1e18;
  for (const Endpoint& endpoint : endpoints) {
    least_blind = std::min(least_blind, endpoint.blind_seconds(now));
  }
  const double seen = std::max(0.0, seconds(now - *began) - least_blind);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seen));
}

Picture Ledger::read(TimePoint now) {
  State& state = *state_;
  Picture picture;
  std::vector<std::optional<Duration>> bounds;
  std::size_t places = 0;
  {
    const std::lock_guard guard(state.mutex);
    picture.at = now;
    if (state.began) picture.watched = std::max(now - *state.began, Duration::zero());
    for (const Endpoint& endpoint : state.endpoints) {
      picture.sources.push_back(endpoint.picture);
      picture.sources.back().blind_seconds = endpoint.blind_seconds(now);
    }
    for (FamilyBook& book : state.books) {
      picture.families.push_back(state.picture_of(book, now));
    }
    picture.proposals.assign(state.proposals.begin(), state.proposals.end());
    picture.locks_unfollowed = state.unfollowed.count();
    bounds = long_from(state.books, state.options);
    places = state.locks.size();
  }
  Scan scan(now, std::move(bounds));
  for (std::size_t from = 0; from < places; from += kChunk) {
    const std::lock_guard guard(state.mutex);
    for (std::size_t place = from; place < std::min(from + kChunk, places); ++place) {
      const LockRecord& record = state.locks.at(place);
      // One that came after the families were read.
      if (record.family >= picture.families.size()) continue;
      if (state.was_freed_unseen(record, now)) {
        Figures& figures = picture.families[record.family].figures;
        figures.held_now -= record.holders.size();
        figures.waiting_now -= record.waiting;
        state.free_unseen(place, now);
      }
      scan.look(place, record, picture.families);
    }
  }
  {
    const std::lock_guard guard(state.mutex);
    for (const std::size_t place : scan.worst()) {
      const LockRecord& record = state.locks.at(place);
      if (record.family >= picture.families.size()) continue;
      LockPicture& lock = picture.worst.emplace_back(
          picture_of(record, state.details.find(place), picture.families[record.family], now));
      lock.endpoint = state.names[record.endpoint];
      lock.figures.held_long_now = scan.is_held_long(record) ? 1 : 0;
    }
  }
  picture.findings = findings_of(picture);
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
      usage.acquisitions += family.figures.acquisitions;
      usage.locks += family.locks;
      usage.hold.merge(family.figures.hold);
      usage.waits_known = usage.waits_known || family.figures.waits_known;
      usage.accuracy = std::max(usage.accuracy, family.figures.accuracy);
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
  for (std::size_t from = 0; from < places; from += kChunk) {
    const std::lock_guard guard(state.mutex);
    for (std::size_t place = from; place < std::min(from + kChunk, places); ++place) {
      const std::uint64_t acquisitions = state.locks.at(place).counts.acquisitions;
      if (acquisitions > 0) usage.by_lock.push_back(acquisitions);
    }
  }
  return usage;
}

}  // namespace lockbench::watch
