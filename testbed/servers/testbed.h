#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "testbed/process/supervisor.h"

namespace lockbench::testbed {

/// Private servers of one process: a folder of its own in $TMPDIR, else /tmp, and a supervisor that
/// ends servers and folder with it, also if this process is killed. Thread-safe, so that
/// servers can be started side by side. A Server may outlive its Testbed; it is then a stopped
/// server.
class Testbed {
 public:
  static tl::expected<std::unique_ptr<Testbed>, std::string> start();

  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;
  /// Ends all servers and removes the folder, within about 10 s.
  ~Testbed();

  const std::filesystem::path& folder() const { return folder_; }

  /// A new folder for one server, "<kind>-<n>", with an empty folder "data" in it that belongs to
  /// `user` (empty: to the caller).
  tl::expected<std::filesystem::path, std::string> make_server_folder(std::string_view kind,
                                                                      const std::string& user = {});

  const std::shared_ptr<Supervisor>& supervisor() const { return supervisor_; }

 private:
  Testbed(std::filesystem::path folder, std::shared_ptr<Supervisor> supervisor);

  const std::filesystem::path folder_;
  const std::shared_ptr<Supervisor> supervisor_;
  std::atomic<unsigned> folders_ = 0;
};

}  // namespace lockbench::testbed
