#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "testbed/process/clock_page.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

// Libraries of ours that a server is started with.
namespace lockbench::testbed {

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

/// Makes a server note which of its data it has synced, if it does so through the C library. Throws
/// Failure if something is missing for that.
void put_under_sync_shim(const Testbed& testbed, ServerSpec& server);

/// For a server that was killed: cuts each of its data files where it was last synced, as if its
/// host had crashed, and returns how many bytes were lost. A file that was never synced is empty
/// then. Fails if the server has synced nothing. Directories and their names are kept.
tl::expected<std::uintmax_t, std::string> forget_unsynced(const Server& server);

}  // namespace lockbench::testbed
