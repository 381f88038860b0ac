#include "loadgen/cluster/replay.h"

#include <algorithm>
#include <iterator>

namespace lockbench::loadgen::cluster {
namespace {

// A client may be held up between reading the clock and telling what it did then.
constexpr Duration kReserve = std::chrono::milliseconds(20);
// A lock that never excludes would fill memory.
constexpr std::size_t kMostSections = 4096;

bool earlier(const LockEvent& one, const LockEvent& other) { return one.at < other.at; }

}  // namespace

void Replay::add(int rank, std::vector<LockEvent> events, TimePoint complete_until,
                 Duration bound) {
  Rank& of = ranks_.at(static_cast<std::size_t>(rank));
  if (of.lost) return;
  std::sort(events.begin(), events.end(), earlier);
  of.events.insert(of.events.end(), events.begin(), events.end());
  of.complete_until = std::max(of.complete_until, complete_until);
  of.bound = bound;
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
  std::vector<std::pair<LockEvent, int>> now;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    auto& events = ranks_[i].events;
    for (; !events.empty() && events.front().at <= known_until; events.pop_front()) {
      now.emplace_back(events.front(), static_cast<int>(i));
    }
  }
  std::stable_sort(now.begin(), now.end(), [](const auto& one, const auto& other) {
    return earlier(one.first, other.first);
  });
  for (const auto& [event, rank] : now) follow(rank, event);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].lost && ranks_[i].events.empty()) forget_open(static_cast<int>(i), known_until);
  }
  settle_all(known_until);
  run_.audit.add(std::exchange(found_, {}));
}

void Replay::finish(TimePoint now) {
  for (Rank& rank : ranks_) {
    rank.complete_until = now + kReserve;
    std::sort(rank.events.begin(), rank.events.end(), earlier);
  }
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

void Replay::follow(int rank, const LockEvent& event) {
  switch (event.kind) {
    case LockEvent::Kind::waits:
      waits_[event.client] = {rank, event.key, run_.handoff.begin_wait(event.key)};
      break;
    case LockEvent::Kind::granted:
      granted(rank, event);
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
      close(keys_[event.key], event.client, event.at - event.span);
      if (run_.handoff.release_started(event.key, event.mode, event.at)) {
        releases_[{event.client, event.key}] = event.at;
      }
      break;
    case LockEvent::Kind::released:
      released(event);
      break;
  }
}

void Replay::granted(int rank, const LockEvent& event) {
  Key& key = keys_[event.key];
  const Section section{.granted = event.at,
                        .left = TimePoint::max(),
                        .bound = ranks_[static_cast<std::size_t>(rank)].bound,
                        .rank = rank,
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

void Replay::close(Key& key, int client, TimePoint left) {
  const auto open = std::find_if(
      key.sections.rbegin(), key.sections.rend(),
      [&](const Section& section) { return section.client == client && !section.closed; });
  if (open == key.sections.rend()) return;
  open->closed = true;
  open->left = std::max(open->granted, left);
}

void Replay::settle_all(TimePoint known_until) {
  for (auto number = busy_.begin(); number != busy_.end();) {
    Key& key = keys_[*number];
    settle(key, known_until);
    number = key.sections.empty() ? busy_.erase(number) : std::next(number);
  }
}

void Replay::settle(Key& key, TimePoint known_until) {
  Duration widest{};
  for (const Rank& rank : ranks_) widest = std::max(widest, rank.bound);
  while (!key.sections.empty()) {
    Section& first = key.sections.front();
    if (!first.closed && key.sections.size() > kMostSections) {
      first.closed = true;
      first.left = std::max(first.granted, key.sections.back().granted);
    }
    if (!first.closed) break;
    const bool all_known =
        known_until == TimePoint::max() || first.left + first.bound + widest <= known_until;
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
  const Duration doubt = one.rank == later.rank ? Duration::zero() : one.bound + later.bound;
  const TimePoint end = later.closed ? std::min(one.left, later.left) : one.left;
  const Duration together = end - later.granted;
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
