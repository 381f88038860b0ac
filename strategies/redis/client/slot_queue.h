#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockbench::redis {

/// Commands that wait for their answers: first in, first out. Slots are reused with the strings in
/// them, so that a command costs no allocation. There are about twice as many as commands at once,
/// also if there is always one under way.
template <class T>
class SlotQueue {
 public:
  bool empty() const { return first_ == end_; }
  std::size_t size() const { return end_ - first_; }
  /// 0 is the oldest.
  T& operator[](std::size_t place) { return slots_.at(first_ + place); }
  const T& operator[](std::size_t place) const { return slots_.at(first_ + place); }
  T& back() { return slots_.at(end_ - 1); }

  /// It is as an earlier one has left it.
  T& push() {
    if (end_ == slots_.size() && first_ > end_ / 2) {
      std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(first_),
                  slots_.end());
      end_ -= first_;
      first_ = 0;
    }
    if (end_ == slots_.size()) slots_.emplace_back();
    return slots_[end_++];
  }
  void pop() {
    if (++first_ == end_) first_ = end_ = 0;
  }

 private:
  std::vector<T> slots_;
  std::size_t first_ = 0, end_ = 0;  ///< [first_, end_) are in the queue
};

}  // namespace lockbench::redis
