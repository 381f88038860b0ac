#pragma once

#include <functional>
#include <future>
#include <vector>

namespace lockbench::testbed {

/// Calls work(0) to work(count - 1) side by side, the first on the calling thread, and returns when
/// all are done. Calls for which there is no thread run after the others. Throws the first
/// exception of a call.
inline void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  constexpr auto kIfPossible = std::launch::async | std::launch::deferred;
  std::vector<std::future<void>> others;
  for (std::size_t index = 1; index < count; ++index) {
    others.push_back(std::async(kIfPossible, std::cref(work), index));
  }
  if (count > 0) work(0);
  for (auto& other : others) other.get();
}

}  // namespace lockbench::testbed
