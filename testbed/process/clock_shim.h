#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "testbed/process/clock_page.h"
#include "testbed/servers/testbed.h"

namespace lockbench::testbed {

struct ServerSpec;

/// The wall clock of one server or program, movable while it runs: gettimeofday, time and
/// CLOCK_REALTIME, for its process and its children, if they ask the C library. Monotonic clocks do
/// not change. Thread-safe. Outlives its server.
class ClockShim {
 public:
  /// Makes the file to share with the server; the error says what is missing. `library` empty:
  /// lockbench-clock-shim.so beside this program.
  static tl::expected<std::unique_ptr<ClockShim>, std::string> make(
      Testbed& testbed, std::filesystem::path library = {});

  ClockShim(const ClockShim&) = delete;
  ClockShim& operator=(const ClockShim&) = delete;
  ~ClockShim();

  /// Sets how far the server's clock is ahead of the machine's; negative if behind.
  void set(std::chrono::nanoseconds ahead);

  /// Makes a program use this clock, and its children.
  std::map<std::string, std::string> environment() const;
  void put_under(ServerSpec& server) const;

  /// The number of programs that have loaded it; rises with each start of the server. They count
  /// themselves, as the maps of another user's process cannot be read.
  std::int64_t loads() const;
  const std::filesystem::path& library() const { return library_; }

 private:
  ClockShim(std::filesystem::path library, std::filesystem::path lent, std::filesystem::path file,
            ClockPage* page)
      : library_(std::move(library)), lent_(std::move(lent)), file_(std::move(file)), page_(page) {}

  const std::filesystem::path library_;
  const std::filesystem::path lent_;  ///< a copy of it
  const std::filesystem::path file_;  ///< only the servers' account may open it
  ClockPage* const page_;             ///< shared with the server
};

}  // namespace lockbench::testbed
