#pragma once

#include <cstddef>
#include <span>

// GCC defines the first pair, clang answers questions.
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define LOCKBENCH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define LOCKBENCH_TSAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define LOCKBENCH_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define LOCKBENCH_TSAN 1
#endif

#ifdef LOCKBENCH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LOCKBENCH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define LOCKBENCH_NO_SANITIZE __attribute__((no_sanitize("address", "thread")))

namespace lockbench::fibers {

#if defined(LOCKBENCH_ASAN) || defined(LOCKBENCH_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// What is left of the frames there may be written again.
inline void unpoison([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef LOCKBENCH_ASAN
  __asan_unpoison_memory_region(memory.data(), memory.size());
#endif
}

}  // namespace lockbench::fibers
