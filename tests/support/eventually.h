#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace lockbench::test {

/// How long tests wait for what must come. Only a broken program takes so long, so it is no
/// assertion about time.
inline constexpr std::chrono::seconds kPatience{120};

/// Whether the condition comes true within the time; asked every few milliseconds.
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
