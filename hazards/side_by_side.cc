#include "hazards/side_by_side.h"

#include <atomic>
#include <thread>
#include <vector>

namespace lockbench::hazards {

void side_by_side(std::size_t count, int at_once, const std::function<void(std::size_t)>& work,
                  const std::stop_token& stop) {
  std::atomic<std::size_t> next{0};
  const auto take_turns = [&] {
    while (!stop.stop_requested()) {
      const std::size_t index = next++;
      if (index >= count) return;
      work(index);
    }
  };
  std::vector<std::jthread> workers;
  workers.reserve(static_cast<std::size_t>(at_once));
  for (int worker = 0; worker < at_once; ++worker) workers.emplace_back(take_turns);
}

}  // namespace lockbench::hazards
