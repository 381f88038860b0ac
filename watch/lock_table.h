#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "watch/lock_record.h"

namespace lockbench::watch {

/// The locks that are followed, at most so many: beyond that, some lock that has been free for a
/// while is forgotten for a new one. For one thread.
class LockTable {
 public:
  explicit LockTable(std::uint64_t most) : most_(most) {}

  /// The place of a lock by its hash; nothing if it is not followed.
  std::optional<std::size_t> find(std::uint64_t key) const;
  /// An empty record for it; nothing if all places are taken by locks in use.
  std::optional<std::size_t> add(std::uint64_t key, TimePoint now);
  bool forgot_any() const { return forgot_any_; }

  LockRecord& at(std::size_t place) { return records_[place]; }
  const LockRecord& at(std::size_t place) const { return records_[place]; }
  std::size_t size() const { return records_.size(); }

 private:
  std::optional<std::size_t> forget_one(TimePoint now);

  const std::uint64_t most_;
  std::deque<LockRecord> records_;  ///< grows without moving a million records
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::size_t hand_ = 0;  ///< where the search for a lock to forget goes on
  bool forgot_any_ = false;
};

}  // namespace lockbench::watch
