#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <vector>

namespace lockbench::loadgen {

/// Threads that write to the same line slow each other down. Not the standard library's constant,
/// which varies with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

/// Makes an atomic at least that value.
template <class T>
void raise_to(std::atomic<T>& atomic, std::type_identity_t<T> value) noexcept {
  T seen = atomic.load(std::memory_order_relaxed);
  while (seen < value && !atomic.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

struct Unmap {
  std::size_t bytes = 0;
  void operator()(void* pages) const { ::munmap(pages, bytes); }
};
/// Objects that are zero, and take memory and time only from their first use on: the kernel's zero
/// pages.
template <class T>
using Zeros = std::unique_ptr<T[], Unmap>;  // NOLINT(modernize-avoid-c-arrays)

template <class T>
Zeros<T> make_zeros(std::size_t count) {
  if (count == 0) return {};
  const std::size_t bytes = count * sizeof(T);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return Zeros<T>(static_cast<T*>(pages), Unmap{bytes});
}

/// A State for each used key of a run, made on first use: a run over 10 million keys may use one in
/// ten. An unused key costs four bytes. Keys from 0. Thread-safe; takes no lock, except for a
/// moment on the first use of a key.
template <class State>
class PerKey {
 public:
  explicit PerKey(int keys)
      : numbers_(static_cast<std::size_t>(keys)),
        chunks_((numbers_.size() + kChunk - 1) / kChunk) {}

  /// Makes it if necessary.
  State& operator[](int key) {
    std::atomic<std::uint32_t>& place = numbers_[static_cast<std::size_t>(key)];
    const std::uint32_t number = place.load(std::memory_order_acquire);
    return state(number == 0 ? add(place) : number);
  }

  /// Null if the key was never used.
  State* find(int key) const {
    const std::uint32_t number =
        numbers_[static_cast<std::size_t>(key)].load(std::memory_order_acquire);
    return number == 0 ? nullptr : &state(number);
  }

  /// Calls visit(key, state) for each used key, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (int key = 0; key < static_cast<int>(numbers_.size()); ++key) {
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

  std::vector<std::atomic<std::uint32_t>> numbers_;  ///< 0: never used
  /// By number. Has room for all pointers from the beginning: a reader must never see them move.
  std::vector<std::unique_ptr<State[]>> chunks_;
  std::mutex adding_;
  std::uint32_t added_ = 0;
};

}  // namespace lockbench::loadgen
