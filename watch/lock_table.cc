#include "watch/lock_table.h"

#include <algorithm>

namespace lockbench::watch {
namespace {

/// A lock that expired may be taken over until then.
constexpr Duration kForgetAfter = std::chrono::seconds(10);
/// Places that one addition looks at.
constexpr std::size_t kMostLooks = 256;

constexpr std::size_t kLongestHistory = 256;

}  // namespace

std::optional<std::size_t> LockTable::find(std::uint64_t key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
}

std::optional<std::size_t> LockTable::add(std::uint64_t key, TimePoint now) {
  std::optional<std::size_t> place;
  if (records_.size() < most_) {
    place = records_.size();
    records_.emplace_back();
  } else {
    place = forget_one(now);
    if (!place) return std::nullopt;
    records_[*place] = LockRecord();
  }
  records_[*place].key = key;
  places_.emplace(key, static_cast<std::uint32_t>(*place));
  return place;
}

std::optional<std::size_t> LockTable::forget_one(TimePoint now) {
  const std::size_t looks = std::min(kMostLooks, records_.size());
  for (std::size_t i = 0; i < looks; ++i) {
    const std::size_t place = hand_;
    hand_ = (hand_ + 1) % records_.size();
    const LockRecord& record = records_[place];
    if (!record.is_free() || now - record.at < kForgetAfter) continue;
    places_.erase(record.key);
    forgot_any_ = true;
    return place;
  }
  return std::nullopt;
}

void LockDetails::take(const Happenings& happenings, const LockRecord& record, bool queue_changed) {
  const auto add = [&](TimePoint at, Moment::Kind kind, std::uint64_t owner) {
    if (history.size() == kLongestHistory) history.pop_front();
    history.push_back({at, kind, owner == 0 ? "" : shown_hash(owner), record.waiting});
  };
  for (const Happening& event : happenings.list) add(event.at, event.kind, event.owner);
  if (queue_changed && happenings.list.empty()) {
    add(record.at, Moment::Kind::queue_changed, 0);
  }
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
