#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace lockbench::test {

/// Only a broken program takes that long, however busy the machine is. No assertion: what it
/// bounds ends by an event.
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
