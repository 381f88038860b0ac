#include "loadgen/record/handoff.h"

#include <algorithm>
#include <utility>

namespace lockbench::loadgen {
namespace {

/// A lock that starves its waiters would fill memory.
constexpr std::size_t kMostReleases = 1 << 14;

/// The first of the releases at which this client was waiting. Mostly few have come since.
auto first_since(auto& releases, const WaitTicket& wait) {
  auto at = releases.end();
  while (at != releases.begin() && std::prev(at)->number > wait.number) --at;
  return at;
}

/// Removes those of the releases at which this client was waiting that `is_over`.
void erase_since(auto& releases, const WaitTicket& wait, const auto& is_over) {
  releases.erase(std::remove_if(first_since(releases, wait), releases.end(), is_over),
                 releases.end());
}

}  // namespace

WaitTicket HandoffTracker::begin_wait(int key, Mode mode) {
  Slot& mine = slots_[key];
  const std::scoped_lock lock(mine.mutex);
  const bool contended =
      mine.waiters.in_conflict_with(mode) + mine.holders.in_conflict_with(mode) > 0;
  ++mine.waiters[mode];
  return {.number = ++mine.events,
          .mode = mode,
          .contended = contended,
          .held = mine.holders.all() > 0,
          .grants = mine.grants};
}

GrantNote HandoffTracker::granted(int key, const WaitTicket& wait, TimePoint granted_at,
                                  std::vector<Handoff>& completed) {
  Slot& mine = slots_[key];
  const std::scoped_lock lock(mine.mutex);
  --mine.waiters[wait.mode];
  ++mine.holders[wait.mode];
  ++mine.grants;
  if (std::exchange(mine.stuck, false)) stuck_.fetch_sub(1, std::memory_order_relaxed);
  GrantNote note{.contended = wait.contended || mine.waiters.in_conflict_with(wait.mode) > 0};
  if (mine.releases == nullptr) return note;
  std::vector<Release>& releases = *mine.releases;
  if (!releases.empty() && granted_at >= releases.back().started &&
      !std::exchange(releases.back().followed, true)) {
    note.turnaround = granted_at - releases.back().started;
  }
  // This grant overtakes all releases before its wait. If one is overtaken already, so are those
  // before it.
  for (auto at = first_since(releases, wait); at != releases.begin() && !std::prev(at)->served;) {
    --at;
    note.overtook = true;
    if (std::exchange(at->overtaken, true)) break;
  }
  erase_since(releases, wait, [&](Release& release) {
    if (release.served) return false;
    // A grant from before the release: this client was not waiting at it.
    if (granted_at < release.started) return --release.waiting == 0;
    if (!release.confirmed) {
      release.served = true;
      release.served_at = granted_at;
      return false;
    }
    completed.push_back(
        {release.started, granted_at - release.started, !release.overtaken, release.weight});
    return true;
  });
  return note;
}

void HandoffTracker::gave_up(int key, const WaitTicket& wait, TimePoint now,
                             std::vector<Duration>& unserved) {
  Slot& mine = slots_[key];
  const std::scoped_lock lock(mine.mutex);
  --mine.waiters[wait.mode];
  if (mine.releases == nullptr) return;
  erase_since(*mine.releases, wait, [&](Release& release) {
    if (release.served || --release.waiting > 0) return false;
    // An unconfirmed release may have failed, so it does not count as missed.
    if (release.confirmed) {
      unserved.insert(unserved.end(), release.weight, now - release.started);
    }
    return true;
  });
}

void HandoffTracker::found_taken(int key, const WaitTicket& wait) {
  Slot& mine = slots_[key];
  const std::scoped_lock lock(mine.mutex);
  if (wait.held || wait.grants != mine.grants) return;
  if (!std::exchange(mine.stuck, true)) stuck_.fetch_add(1, std::memory_order_relaxed);
}

bool HandoffTracker::release_started(int key, Mode mode, TimePoint started) {
  Slot& mine = slots_[key];
  const std::scoped_lock lock(mine.mutex);
  --mine.holders[mode];
  if (mode == Mode::shared || mine.waiters.all() == 0) return false;
  if (mine.releases == nullptr) mine.releases = std::make_unique<std::vector<Release>>();
  if (mine.releases->size() >= kMostReleases) thin_out(*mine.releases);
  mine.releases->push_back(
      {.number = ++mine.events, .started = started, .waiting = mine.waiters.all()});
  return true;
}

void HandoffTracker::release_finished(int key, TimePoint started, bool success,
                                      std::vector<Handoff>& completed) {
  Slot& mine = slots_[key];
  const std::scoped_lock lock(mine.mutex);
  if (mine.releases == nullptr) return;
  // The youngest, mostly: two of one key may begin in the same nanosecond.
  const auto found = std::find_if(
      mine.releases->rbegin(), mine.releases->rend(),
      [&](const Release& release) { return release.started == started && !release.confirmed; });
  if (found == mine.releases->rend()) return;
  if (success && !found->served) {
    found->confirmed = true;
    return;
  }
  if (success) {
    completed.push_back({started, found->served_at - started, !found->overtaken, found->weight});
  }
  mine.releases->erase(std::next(found).base());
}

std::vector<Duration> HandoffTracker::unserved(TimePoint now) const {
  std::vector<Duration> waits;
  slots_.for_each([&](int, const Slot& slot) {
    const std::scoped_lock lock(slot.mutex);
    if (slot.releases == nullptr) return;
    for (const Release& release : *slot.releases) {
      if (release.confirmed) waits.insert(waits.end(), release.weight, now - release.started);
    }
  });
  return waits;
}

/// Every second confirmed release stands for its neighbour, too.
void HandoffTracker::thin_out(std::vector<Release>& releases) {
  std::vector<Release> rest;
  for (const Release& release : releases) {
    const bool alike = release.confirmed && release.overtaken && !rest.empty() &&
                       rest.back().confirmed && rest.back().overtaken &&
                       rest.back().weight == release.weight;
    if (alike) {
      rest.back().weight += release.weight;
    } else {
      rest.push_back(release);
    }
  }
  releases = std::move(rest);
}

}  // namespace lockbench::loadgen
