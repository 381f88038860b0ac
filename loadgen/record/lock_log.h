#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "loadgen/record/atomics.h"
#include "loadgen/record/metrics.h"
#include "strategies/duration.h"
#include "strategies/lease.h"

namespace lockbench::loadgen {

/// What a client did with a lock. Rank 0 puts the events of all ranks in the order of time.
struct LockEvent {
  enum class Kind : std::uint8_t {
    waits,     ///< begins to
    granted,   ///< `span`: since the intended start; `flag`: its rank found its number too low
    gave_up,   ///< `flag`: the lock was taken all the time
    releases,  ///< begins to; `span`: since the section was over
    released,  ///< `span`: since it began to; `flag`: with success
  };

  TimePoint at;
  Duration span{};
  std::optional<std::uint64_t> fencing{};  ///< of a grant
  std::int32_t key = 0, client = 0;
  Kind kind = Kind::waits;
  Mode mode = Mode::exclusive;
  Phase phase = Phase::unmeasured;  ///< whose figures count the section
  bool flag = false;
};

/// Keeps events until they are taken. Adding takes a mutex that mostly nobody else wants, and
/// memory is bounded: what has no room is counted. Thread-safe.
class LockLog {
 public:
  static constexpr std::size_t kMostEvents = std::size_t{1} << 20;  ///< that are kept at a time

  void add(const LockEvent& event) {
    Part& part = parts_[static_cast<std::size_t>(event.client) % kParts];
    const std::scoped_lock lock(part.mutex);
    if (part.events.size() >= kMostEvents / kParts) {
      ++part.missed;
    } else {
      part.events.push_back(event);
    }
  }

  struct Taken {
    std::vector<LockEvent> events;  ///< in no order
    std::uint64_t missed = 0;
  };
  Taken take() {
    Taken taken;
    for (Part& part : parts_) {
      const std::scoped_lock lock(part.mutex);
      taken.events.insert(taken.events.end(), part.events.begin(), part.events.end());
      part.events.clear();
      taken.missed += part.missed;
      part.missed = 0;
    }
    return taken;
  }

 private:
  // A prime: a rank may have every second client, or every 16th.
  static constexpr std::size_t kParts = 17;
  struct alignas(kCacheLine) Part {
    std::mutex mutex;
    std::vector<LockEvent> events;
    std::uint64_t missed = 0;
  };
  std::array<Part, kParts> parts_;
};

}  // namespace lockbench::loadgen
