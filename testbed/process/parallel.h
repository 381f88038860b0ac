#pragma once

#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace lockbench::testbed {

/// Calls work(0) to work(count - 1) side by side, the first on the calling thread, and returns when
/// all are done; what cannot have a thread is done one after the other. Throws the first exception
/// that one of them threw.
inline void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  const auto guarded = [&](std::size_t index) {
    try {
      work(index);
    } catch (...) {
      failures[index] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (std::size_t index = 1; index < count; ++index) {
      try {
        threads.emplace_back(guarded, index);
      } catch (const std::system_error&) {
        guarded(index);
      }
    }
    if (count > 0) guarded(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lockbench::testbed
