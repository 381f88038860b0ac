#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "testbed/testbed.h"

namespace lockbench::testbed {

struct ServerSpec;

/// The wall clock of one server, which can be moved while the server runs: gettimeofday, time and
/// CLOCK_REALTIME, for the server's process and its children. Its monotonic clocks stay what they
/// are. Thread-safe. Outlives the starting of its server; the offset stays when it goes.
class ClockShim {
 public:
  /// Makes the file that the server will share; the error says what is missing. `library` empty:
  /// lockbench-clock-shim.so beside this program, or beside what `testbed` runs.
  static tl::expected<std::unique_ptr<ClockShim>, std::string> make(
      Testbed& testbed, std::filesystem::path library = {});

  ClockShim(const ClockShim&) = delete;
  ClockShim& operator=(const ClockShim&) = delete;
  ~ClockShim();

  /// From now on the server's clock is ahead of the machine's by so much; negative: behind.
  void set(std::chrono::nanoseconds ahead);

  /// Lets a server run by this clock, and not start where it cannot.
  void put_under(ServerSpec& server) const;

 private:
  ClockShim(std::filesystem::path library, std::filesystem::path file, std::int64_t* offset)
      : library_(std::move(library)), file_(std::move(file)), offset_(offset) {}

  const std::filesystem::path library_, file_;
  std::int64_t* const offset_;  ///< shared with the server
};

}  // namespace lockbench::testbed
