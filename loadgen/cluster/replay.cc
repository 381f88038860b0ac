#include "loadgen/cluster/replay.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockbench::loadgen::cluster {
namespace {

// A client may be held up between reading the clock and telling what it did then.
constexpr Duration kReserve = std::chrono::milliseconds(20);
// A lock that never excludes would fill memory, and so would clocks that tell nothing.
constexpr std::size_t kMostSections = 4096, kMostNumbers = 4096;

}  // namespace

void Replay::add(int rank, const std::vector<LockEvent>& events, TimePoint complete_until,
                 const ClockReport& clock) {
  Rank& of = ranks_.at(static_cast<std::size_t>(rank));
  if (of.lost) return;
  for (const LockEvent& event : events) {
    if (is_of_run(event)) of.events.push_back({event, clock.offset, clock.bound, rank});
  }
  of.complete_until = std::max(of.complete_until, complete_until);
  widest_ = std::max(widest_, clock.bound);
}

bool Replay::is_of_run(const LockEvent& event) const {
  return event.phase <= Phase::ending && event.key >= 0 && event.key < run_.workload.key_count() &&
         event.client >= 0 && event.client < run_.workload.clients;
}

void Replay::lose(int rank) { ranks_.at(static_cast<std::size_t>(rank)).lost = true; }

void Replay::forget_open(int rank, TimePoint now) {
  // Nobody knows how long it held what it had.
  for (const int number : busy_) {
    for (Section& section : keys_[number].sections) {
      if (section.rank != rank || section.closed) continue;
      section.closed = true;
      section.left = section.granted;
    }
  }
  for (auto& [number, client] : clients_) {
    if (client.rank != rank || !client.pending.wait) continue;
    std::vector<Duration> unserved;
    run_.handoff.gave_up(client.key, *client.pending.wait, now, unserved);
    client.pending.wait.reset();
  }
}

void Replay::advance() {
  TimePoint known_until = TimePoint::max();
  for (const Rank& rank : ranks_) {
    if (!rank.lost) known_until = std::min(known_until, rank.complete_until);
  }
  if (known_until == TimePoint::min() || known_until == TimePoint::max()) return;
  known_until -= kReserve;
  std::vector<std::pair<TimePoint, ReceivedEvent>> now;
  for (Rank& rank : ranks_) {
    // A rank knows the order of what happened there better than its idea of rank 0's clock does.
    std::stable_sort(rank.events.begin(), rank.events.end(),
                     [](const ReceivedEvent& one, const ReceivedEvent& other) {
                       return one.event.at - one.offset < other.event.at - other.offset;
                     });
    const auto later = std::find_if(
        rank.events.begin(), rank.events.end(),
        [&](const ReceivedEvent& received) { return received.event.at > known_until; });
    TimePoint latest = TimePoint::min();
    for (auto received = rank.events.begin(); received != later; ++received) {
      latest = std::max(latest, received->event.at);
      now.emplace_back(latest, *received);
    }
    rank.events.erase(rank.events.begin(), later);
  }
  std::stable_sort(now.begin(), now.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  for (const auto& [at, received] : now) follow(received);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].lost && ranks_[i].events.empty()) forget_open(static_cast<int>(i), known_until);
  }
  settle_all(known_until);
  run_.audit.add(std::exchange(found_, {}));
}

void Replay::finish(TimePoint now) {
  for (Rank& rank : ranks_) rank.complete_until = now + kReserve;
  advance();
  for (const int number : busy_) {
    for (Section& section : keys_[number].sections) {
      if (!section.closed) section.left = std::max(section.granted, now);
      section.closed = true;
    }
  }
  settle_all(TimePoint::max());
  run_.audit.add(std::exchange(found_, {}));
}

void Replay::follow(const ReceivedEvent& received) {
  const LockEvent& event = received.event;
  Key& key = keys_[event.key];
  Client& client = clients_[event.client];
  switch (event.kind) {
    case LockEvent::Kind::waits:
      client.rank = received.rank;
      client.key = event.key;
      client.mark = mark_at(key, event.at);
      break;
    case LockEvent::Kind::granted:
      open(key, received);
      count_streak(key, event);
      check_fencing(key, client, received);
      break;
    case LockEvent::Kind::releases:
      close(key, received);
      break;
    case LockEvent::Kind::gave_up:
    case LockEvent::Kind::released:
      break;
  }
  contention_.follow(event, client.pending, [&](Count what, std::uint64_t more) {
    run_.recorder.add(event.phase, what, more);
  });
}

void Replay::open(Key& key, const ReceivedEvent& received) {
  const LockEvent& event = received.event;
  const Section section{.granted = event.at,
                        .left = TimePoint::max(),
                        .granted_offset = received.offset,
                        .left_offset = received.offset,
                        .bound = received.bound,
                        .rank = received.rank,
                        .client = event.client,
                        .shared = event.mode == Mode::shared};
  auto at = key.sections.end();
  while (at != key.sections.begin() && std::prev(at)->granted > event.at) --at;
  key.sections.insert(at, section);
  busy_.insert(event.key);
}

AcquireMark Replay::mark_at(Key& key, TimePoint asked) const {
  const auto is_certain = [&](const Number& number) {
    return number.at + number.bound + widest_ <= asked;
  };
  while (!key.numbers.empty() && is_certain(key.numbers.front())) {
    key.mark.floor = std::max(key.mark.floor, key.numbers.front().mark.floor);
    key.numbers.pop_front();
  }
  return key.mark;
}

void Replay::check_fencing(Key& key, const Client& client, const ReceivedEvent& received) {
  const LockEvent& event = received.event;
  if (!event.fencing) return;
  // Its rank has counted it, if it is one that the rank's own numbers show.
  const bool counted = event.flag;
  if (client.pending.wait && !counted && client.mark.is_above(event.mode, *event.fencing)) {
    ++found_.fence_regressions;
  }
  if (key.numbers.size() >= kMostNumbers) key.numbers.pop_front();
  key.numbers.push_back({event.at, received.bound, AcquireMark::after(event.mode, *event.fencing)});
}

void Replay::count_streak(Key& key, const LockEvent& event) {
  const bool measured = event.at >= run_.measure_start.load();
  const bool again = key.streak_client == event.client && key.measured == measured;
  key.streak = again ? key.streak + 1 : 1;
  key.streak_client = event.client;
  key.measured = measured;
  if (measured) found_.longest_streak = std::max(found_.longest_streak, key.streak);
}

void Replay::close(Key& key, const ReceivedEvent& received) {
  const auto open =
      std::find_if(key.sections.rbegin(), key.sections.rend(), [&](const Section& section) {
        return section.client == received.event.client && !section.closed;
      });
  if (open == key.sections.rend()) return;
  open->closed = true;
  open->left = received.event.at - received.event.span;
  open->left_offset = received.offset;
  open->bound = std::max(open->bound, received.bound);
}

void Replay::settle_all(TimePoint known_until) {
  for (auto number = busy_.begin(); number != busy_.end();) {
    Key& key = keys_[*number];
    settle(key, known_until);
    number = key.sections.empty() ? busy_.erase(number) : std::next(number);
  }
}

void Replay::settle(Key& key, TimePoint known_until) {
  while (!key.sections.empty()) {
    Section& first = key.sections.front();
    if (!first.closed && key.sections.size() > kMostSections) {
      first.closed = true;
      first.left = std::max(first.granted, key.sections.back().granted);
    }
    if (!first.closed) break;
    const bool all_known =
        known_until == TimePoint::max() || first.left + first.bound + widest_ <= known_until;
    if (!all_known && key.sections.size() <= kMostSections) break;
    for (auto later = std::next(key.sections.begin()); later != key.sections.end(); ++later) {
      if (later->granted >= first.left + first.bound + later->bound) break;
      judge(key, first, *later);
    }
    found_.overlaps += first.overlaps ? 1 : 0;
    found_.undecided += !first.overlaps && first.undecided ? 1 : 0;
    key.sections.pop_front();
  }
}

void Replay::judge(Key& key, const Section& one, Section& later) {
  if (one.shared && later.shared) return;
  const TimePoint end = later.closed ? std::min(one.left, later.left) : one.left;
  Duration together = end - later.granted;
  Duration doubt = one.bound + later.bound;
  if (one.rank == later.rank) {
    // By its own clock: the offset may have been corrected in between, and with it their order.
    const TimePoint left = one.left - one.left_offset;
    const TimePoint later_left = later.closed ? later.left - later.left_offset : TimePoint::max();
    together = std::min(left, later_left) -
               std::max(one.granted - one.granted_offset, later.granted - later.granted_offset);
    doubt = Duration::zero();
  }
  if (together > doubt) {
    later.overlaps = true;
    const TimePoint begin = std::max(later.granted, key.conflict_until);
    found_.overlap_time += std::max(Duration::zero(), end - begin);
    key.conflict_until = std::max(key.conflict_until, end);
  } else if (together > -doubt) {
    later.undecided = true;
  }
}

}  // namespace lockbench::loadgen::cluster
