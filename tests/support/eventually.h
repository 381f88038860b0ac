#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace lockbench::test {

/// How long tests wait for an event that must come. Only a broken program takes this long, so it is
/// not an assertion about time.
inline constexpr std::chrono::seconds kPatience{120};

/// Whether the condition becomes true in time; checked every few milliseconds.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds within = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace lockbench::test
