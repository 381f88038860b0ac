#include "watch/lock_table.h"

#include <algorithm>

namespace lockbench::watch {
namespace {

/// A lock that expired may be taken over until then.
constexpr Duration kForgetAfter = std::chrono::seconds(10);
/// Places that one addition looks at.
constexpr std::size_t kMostLooks = 256;

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

}  // namespace lockbench::watch
