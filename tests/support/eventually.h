#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace lockbench::test {

/// For how long a test waits for anything. Only a broken program takes longer: it is no assertion.
inline constexpr std::chrono::seconds kPatience{120};

/// Whether the condition comes true in time; asked every few milliseconds.
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
