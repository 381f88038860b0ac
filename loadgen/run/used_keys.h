#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockbench::loadgen {

/// Which keys of a run were used, so that no others are removed at its end. Thread-safe.
class UsedKeys {
 public:
  explicit UsedKeys(int keys) : words_((static_cast<std::size_t>(keys) + kBits - 1) / kBits) {}

  void mark(int key) noexcept {
    std::atomic<std::uint64_t>& word = words_[static_cast<std::size_t>(key) / kBits];
    // Mostly it is set: then nothing is written to memory that clients share.
    if ((word.load(std::memory_order_relaxed) & bit_of(key)) != 0) return;
    word.fetch_or(bit_of(key), std::memory_order_relaxed);
  }

  /// In ascending order. `visit` returns whether to go on.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::uint64_t word = words_[i].load(std::memory_order_relaxed);
      for (; word != 0; word &= word - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(word));
        if (!visit(static_cast<int>(i * kBits + bit))) return;
      }
    }
  }

  bool none() const {
    bool found = false;
    for_each([&](int) {
      found = true;
      return false;
    });
    return !found;
  }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit_of(int key) {
    return std::uint64_t{1} << (static_cast<std::size_t>(key) % kBits);
  }

  std::vector<std::atomic<std::uint64_t>> words_;
};

}  // namespace lockbench::loadgen
