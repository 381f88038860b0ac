#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace lockbench::loadgen {

/// A State for each key of a run, from 0. With few keys they lie side by side. With many, a key
/// gets its State on its first use: a run over 10 million keys may use one in ten. Each key costs
/// four bytes then. Thread-safe; takes no lock, except for a moment on the first use of one of many
/// keys.
template <class State>
class PerKey {
 public:
  static constexpr int kSideBySide = 1 << 16;

  explicit PerKey(int keys) : keys_(static_cast<std::size_t>(keys)) {
    if (keys <= kSideBySide) {
      states_ = std::make_unique<State[]>(keys_);
      return;
    }
    numbers_ = std::make_unique<std::atomic<std::uint32_t>[]>(keys_);
    // All pointers now: a reader must never see them move.
    chunks_.resize((keys_ + kChunk - 1) / kChunk);
  }

  /// Makes it if it is not there.
  State& operator[](int key) {
    const auto at = static_cast<std::size_t>(key);
    if (states_ != nullptr) return states_[at];
    std::uint32_t number = numbers_[at].load(std::memory_order_acquire);
    if (number == 0) number = add(numbers_[at]);
    return state(number);
  }

  /// Null: there is none, as the key was never used.
  State* find(int key) const {
    const auto at = static_cast<std::size_t>(key);
    if (states_ != nullptr) return &states_[at];
    const std::uint32_t number = numbers_[at].load(std::memory_order_acquire);
    return number == 0 ? nullptr : &state(number);
  }

  /// Calls visit(key, state) for each State that is there, in ascending order of the keys.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (int key = 0; key < static_cast<int>(keys_); ++key) {
      if (State* const state = find(key)) visit(key, *state);
    }
  }

 private:
  static constexpr std::size_t kChunk = 1024;

  /// Numbers count from 1, in the order of the first uses.
  std::uint32_t add(std::atomic<std::uint32_t>& number) {
    const std::scoped_lock lock(adding_);
    if (const auto others = number.load(std::memory_order_relaxed); others != 0) return others;
    std::unique_ptr<State[]>& chunk = chunks_[added_ / kChunk];
    if (chunk == nullptr) chunk = std::make_unique<State[]>(kChunk);
    ++added_;
    number.store(added_, std::memory_order_release);
    return added_;
  }

  State& state(std::uint32_t number) const {
    return chunks_[(number - 1) / kChunk][(number - 1) % kChunk];
  }

  const std::size_t keys_;
  std::unique_ptr<State[]> states_;                        ///< few keys
  std::unique_ptr<std::atomic<std::uint32_t>[]> numbers_;  ///< many keys; 0: never used
  std::vector<std::unique_ptr<State[]>> chunks_;           ///< by number
  std::mutex adding_;
  std::uint32_t added_ = 0;
};

}  // namespace lockbench::loadgen
