#include "testbed/servers/testbed.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "testbed/failure.h"
#include "testbed/process/process_tree.h"

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

/// Lets only the account through the folder; it cannot list the folder.
tl::expected<void, std::string> open_to(const Account& account, const fs::path& folder) {
  if (account.name.empty()) return {};
  if (chown(folder.c_str(), geteuid(), account.gid) != 0 || chmod(folder.c_str(), 0710) != 0) {
    return tl::unexpected(fmt::format("cannot open {} to {}: {}", folder.string(), account.name,
                                      std::strerror(errno)));
  }
  const fs::path barred = barred_parent(folder);
  if (barred.empty()) return {};
  return tl::unexpected(fmt::format(
      "the account {} may not enter {}: set TMPDIR to a folder that all users may enter",
      account.name, barred.string()));
}

tl::expected<std::string, std::string> make_secret() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return tl::unexpected(fmt::format("cannot make a secret: {}", std::strerror(errno)));
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

tl::expected<std::unique_ptr<Testbed>, std::string> Testbed::start(bool tls) {
  return attempt([&] {
    const fs::path program = need(find_beside("lockbench-supervisor"));
    Account account = need(server_account());
    std::string secret = need(make_secret());
    fs::path folder = need(make_folder());
    auto supervisor =
        open_to(account, folder).and_then([&] { return Supervisor::spawn(program, folder); });
    if (!supervisor) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
    std::unique_ptr<Testbed> made(new Testbed(std::move(folder), std::move(account),
                                              std::move(secret), need(std::move(supervisor))));
    made->proxies_ = need(ProxyPool::start());
    if (tls) {
      const auto authority = need(Authority::make(made->folder_ / "tls", made->account_));
      made->tls_ = need(authority->issue("server"));
    }
    return made;
  });
}

Testbed::~Testbed() {
  supervisor_->close();
  // Already gone, unless the supervisor was killed.
  std::error_code ignored;
  remove_remains(folder_, ignored);
}

tl::expected<fs::path, std::string> Testbed::make_server_folder(std::string_view kind) {
  const fs::path folder = folder_ / fmt::format("{}-{}", kind, ++folders_);
  const fs::path data = folder / "data";
  for (const fs::path& path : {folder, data}) {
    if (mkdir(path.c_str(), 0700) != 0) {
      return tl::unexpected(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
    }
    if (const auto given = account_.own(path); !given) return tl::unexpected(given.error());
  }
  return folder;
}

tl::expected<fs::path, std::string> Testbed::lend(const fs::path& file,
                                                  const fs::path& folder) const {
  fs::path copy = folder / file.filename();
  std::error_code error;
  fs::copy_file(file, copy, error);
  if (error) {
    return tl::unexpected(
        fmt::format("cannot copy {} to {}: {}", file.string(), copy.string(), error.message()));
  }
  return account_.own(copy).map([&] { return copy; });
}

}  // namespace lockbench::testbed
