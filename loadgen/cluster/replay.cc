#include "loadgen/cluster/replay.h"

#include <algorithm>
#include <iterator>

namespace lockbench::loadgen::cluster {
namespace {

// A client may be held up between reading the clock and telling what it did then.
constexpr Duration kReserve = std::chrono::milliseconds(20);
// A lock that never excludes would fill memory.
constexpr std::size_t kMostSections = 4096;

}  // namespace

void Replay::add(int rank, const std::vector<LockEvent>& events, TimePoint complete_until,
                 const ClockReport& clock) {
  Rank& of = ranks_.at(static_cast<std::size_t>(rank));
  if (of.lost) return;
  for (const LockEvent& event : events) {
    of.events.push_back({event, clock.offset, clock.bound, rank});
  }
  of.complete_until = std::max(of.complete_until, complete_until);
  widest_ = std::max(widest_, clock.bound);
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
  for (auto wait = waits_.begin(); wait != waits_.end();) {
    if (wait->second.rank == rank) {
      std::vector<Duration> unserved;
      run_.handoff.gave_up(wait->second.key, wait->second.ticket, now, unserved);
      wait = waits_.erase(wait);
    } else {
      ++wait;
    }
  }
}

void Replay::advance() {
  TimePoint known_until = TimePoint::max();
  for (const Rank& rank : ranks_) {
    if (!rank.lost) known_until = std::min(known_until, rank.complete_until);
  }
  if (known_until == TimePoint::min() || known_until == TimePoint::max()) return;
  known_until -= kReserve;
  std::vector<std::pair<TimePoint, Told>> now;
  for (Rank& rank : ranks_) {
    // A rank knows the order of what happened there better than its idea of rank 0's clock does.
    std::stable_sort(rank.events.begin(), rank.events.end(),
                     [](const Told& one, const Told& other) {
                       return one.event.at - one.offset < other.event.at - other.offset;
                     });
    const auto later = std::find_if(rank.events.begin(), rank.events.end(),
                                    [&](const Told& told) { return told.event.at > known_until; });
    TimePoint latest = TimePoint::min();
    for (auto told = rank.events.begin(); told != later; ++told) {
      latest = std::max(latest, told->event.at);
      now.emplace_back(latest, *told);
    }
    rank.events.erase(rank.events.begin(), later);
  }
  std::stable_sort(now.begin(), now.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  for (const auto& [at, told] : now) follow(told);
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

void Replay::follow(const Told& told) {
  const LockEvent& event = told.event;
  switch (event.kind) {
    case LockEvent::Kind::waits:
      waits_[event.client] = {told.rank, event.key, run_.handoff.begin_wait(event.key, event.mode)};
      break;
    case LockEvent::Kind::granted:
      granted(told);
      break;
    case LockEvent::Kind::gave_up: {
      const auto wait = waits_.extract(event.client);
      if (wait.empty()) break;
      if (event.flag) run_.handoff.found_taken(event.key, wait.mapped().ticket);
      std::vector<Duration> unserved;
      run_.handoff.gave_up(event.key, wait.mapped().ticket, event.at, unserved);
      auto& cut = run_.recorder.histograms(static_cast<Phase>(event.phase))[Timing::handoff_cut];
      for (const Duration waited : unserved) cut.record(waited);
      break;
    }
    case LockEvent::Kind::releases:
      close(keys_[event.key], told);
      if (run_.handoff.release_started(event.key, event.mode, event.at)) {
        releases_[{event.client, event.key}] = event.at;
      }
      break;
    case LockEvent::Kind::released:
      released(event);
      break;
  }
}

void Replay::granted(const Told& told) {
  const LockEvent& event = told.event;
  Key& key = keys_[event.key];
  const Section section{.granted = event.at,
                        .left = TimePoint::max(),
                        .granted_offset = told.offset,
                        .left_offset = told.offset,
                        .bound = told.bound,
                        .rank = told.rank,
                        .client = event.client,
                        .shared = event.mode == Mode::shared};
  auto at = key.sections.end();
  while (at != key.sections.begin() && std::prev(at)->granted > event.at) --at;
  key.sections.insert(at, section);
  busy_.insert(event.key);
  count_streak(key, event);
  const auto wait = waits_.extract(event.client);
  if (wait.empty()) return;
  const auto phase = static_cast<Phase>(event.phase);
  handoffs_.clear();
  const GrantNote grant =
      run_.handoff.granted(event.key, wait.mapped().ticket, event.at, handoffs_);
  auto& histograms = run_.recorder.histograms(phase);
  if (grant.contended) {
    run_.recorder.add(phase, Count::contended_grants);
  } else {
    histograms[Timing::uncontended].record(event.span);
  }
  if (grant.overtook) run_.recorder.add(phase, Count::overtakings);
  if (grant.turnaround) histograms[Timing::turnaround].record(*grant.turnaround);
  note(phase, handoffs_);
}

void Replay::released(const LockEvent& event) {
  const auto release = releases_.extract({event.client, event.key});
  if (release.empty()) return;
  const auto phase = static_cast<Phase>(event.phase);
  handoffs_.clear();
  run_.handoff.release_finished(event.key, release.mapped(), event.flag, handoffs_);
  if (event.flag) run_.recorder.add(phase, Count::awaited_releases);
  note(phase, handoffs_);
}

void Replay::note(Phase phase, const std::vector<Handoff>& handoffs) {
  for (const Handoff& handoff : handoffs) {
    for (std::uint64_t i = 0; i < handoff.releases; ++i) {
      run_.recorder.histograms(phase)[Timing::handoff].record(handoff.taken);
    }
    if (handoff.direct) run_.recorder.add(phase, Count::direct_handoffs, handoff.releases);
  }
}

void Replay::count_streak(Key& key, const LockEvent& event) {
  const bool measured = event.at >= run_.measure_start.load();
  const bool again = key.streak_client == event.client && key.measured == measured;
  key.streak = again ? key.streak + 1 : 1;
  key.streak_client = event.client;
  key.measured = measured;
  if (measured) found_.longest_streak = std::max(found_.longest_streak, key.streak);
}

void Replay::close(Key& key, const Told& told) {
  const auto open =
      std::find_if(key.sections.rbegin(), key.sections.rend(), [&](const Section& section) {
        return section.client == told.event.client && !section.closed;
      });
  if (open == key.sections.rend()) return;
  open->closed = true;
  open->left = told.event.at - told.event.span;
  open->left_offset = told.offset;
  open->bound = std::max(open->bound, told.bound);
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
