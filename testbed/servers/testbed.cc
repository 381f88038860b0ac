#include "testbed/servers/testbed.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "testbed/servers/programs.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

tl::expected<fs::path, std::string> make_folder() {
  const char* chosen = std::getenv("TMPDIR");
  const fs::path temp = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::error_code error;
  std::string name = (fs::absolute(temp, error) / "lockbench-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return tl::unexpected(
        fmt::format("cannot make a folder in {}: {}", temp.string(), std::strerror(errno)));
  }
  return name;
}

/// The first parent folder of `path` that other users may not enter; empty if there is none.
fs::path barred_parent(const fs::path& path) {
  fs::path way;
  for (const fs::path& step : path.parent_path()) {
    way /= step;
    struct stat facts {};
    if (stat(way.c_str(), &facts) != 0 || (facts.st_mode & S_IXOTH) == 0) return way;
  }
  return {};
}

/// Gives `folder` to the user, and makes its parents accessible but not listable.
tl::expected<void, std::string> hand_over(const fs::path& folder, const std::string& user) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return tl::unexpected(fmt::format("no such user: {}", user));
  const fs::path server = folder.parent_path();
  if (chown(folder.c_str(), found->pw_uid, found->pw_gid) != 0 ||
      chmod(server.c_str(), 0711) != 0 || chmod(server.parent_path().c_str(), 0711) != 0) {
    return tl::unexpected(
        fmt::format("cannot give {} to {}: {}", folder.string(), user, std::strerror(errno)));
  }
  if (const fs::path barred = barred_parent(folder); !barred.empty()) {
    return tl::unexpected(
        fmt::format("{} may not enter {}: set TMPDIR to a folder that all users may enter", user,
                    barred.string()));
  }
  return {};
}

}  // namespace

tl::expected<std::unique_ptr<Testbed>, std::string> Testbed::start() {
  const auto program = find_beside("lockbench-supervisor");
  if (!program) return tl::unexpected(program.error());
  auto folder = make_folder();
  if (!folder) return tl::unexpected(folder.error());
  auto supervisor = Supervisor::spawn(*program, *folder);
  if (!supervisor) {
    std::error_code ignored;
    fs::remove_all(*folder, ignored);
    return tl::unexpected(supervisor.error());
  }
  return std::unique_ptr<Testbed>(new Testbed(*std::move(folder), *std::move(supervisor)));
}

Testbed::Testbed(fs::path folder, std::shared_ptr<Supervisor> supervisor)
    : folder_(std::move(folder)), supervisor_(std::move(supervisor)) {}

Testbed::~Testbed() {
  supervisor_->close();
  // Already gone, unless the supervisor was killed.
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

tl::expected<fs::path, std::string> Testbed::make_server_folder(std::string_view kind,
                                                                const std::string& user) {
  const fs::path folder = folder_ / fmt::format("{}-{}", kind, ++folders_);
  const fs::path data = folder / "data";
  for (const fs::path& path : {folder, data}) {
    if (mkdir(path.c_str(), 0700) != 0) {
      return tl::unexpected(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
    }
  }
  if (!user.empty()) {
    if (const auto given = hand_over(data, user); !given) return tl::unexpected(given.error());
  }
  return folder;
}

}  // namespace lockbench::testbed
