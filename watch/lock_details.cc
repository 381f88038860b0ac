#include "watch/lock_details.h"

#include <algorithm>

namespace lockbench::watch {
namespace {

constexpr std::size_t kLongestHistory = 256;

}  // namespace

void LockDetails::take(const Happenings& happenings, const LockRecord& record, bool queue_changed) {
  const auto add = [&](TimePoint at, Moment::Kind kind, std::uint64_t owner) {
    if (history.size() == kLongestHistory) history.pop_front();
    history.push_back({at, kind, owner, record.waiting});
  };
  for (const Happening& event : happenings.list) {
    if (event.lasted) hold.record(*event.lasted);
    if (event.waited && event.counted) wait.record(*event.waited);
    if (event.margin) {
      smallest_margin = smallest_margin ? std::min(*smallest_margin, *event.margin) : *event.margin;
    }
    add(event.at, event.kind, event.owner);
  }
  if (queue_changed && happenings.list.empty()) {
    add(record.at, Moment::Kind::queue_changed, 0);
  }
}

std::vector<Moment> LockDetails::moments() const {
  std::vector<Moment> moments;
  moments.reserve(history.size());
  for (const Event& event : history) {
    moments.push_back(
        {event.at, event.kind, event.owner == 0 ? "" : shown_hash(event.owner), event.waiting});
  }
  return moments;
}

LockDetails* DetailedLocks::find(std::size_t place) {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [place](const LockDetails& one) { return one.place == place; });
  return found == all_.end() ? nullptr : &*found;
}

void DetailedLocks::forget(std::size_t place) {
  if (LockDetails* const found = find(place)) *found = LockDetails{.place = SIZE_MAX};
}

}  // namespace lockbench::watch
