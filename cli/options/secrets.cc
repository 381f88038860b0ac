#include "cli/options/secrets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace lockbench::cli {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;
constexpr std::string_view kBlanks = " \t\r\n";

/// What stands behind the first "password" with an = behind it; there are "sslpassword" and
/// "?password=" too.
bool has_password_setting(std::string_view text) {
  constexpr std::string_view kName = "password";
  while (true) {
    const std::size_t name = text.find(kName);
    if (name == std::string_view::npos) return false;
    text.remove_prefix(name + kName.size());
    const std::size_t next = text.find_first_not_of(kBlanks);
    if (next != std::string_view::npos && text[next] == '=') return true;
  }
}

/// "scheme://user:password@..."
bool has_password_in_url(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return false;
  text.remove_prefix(scheme + 3);
  const std::size_t at = text.rfind('@');
  return at != std::string_view::npos && text.substr(0, at).find(':') != std::string_view::npos;
}

/// systemd makes their folder for the unit's user alone. Their mode shows the mask of an access
/// list as rights of a group.
bool is_credential(const std::string& path) {
  const char* const folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder != nullptr && *folder == '/' && path.starts_with(std::string(folder) + "/") &&
         path.find("/../") == std::string::npos;
}

std::string exposure(const struct stat& file, const std::string& path) {
  if (is_credential(path)) return {};
  if (file.st_uid != 0 && file.st_uid != geteuid()) return "the file belongs to another user";
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return fmt::format("the file is open to other users: chmod 600 {}", path);
}

/// Closes it.
struct OpenFile {
  int number;
  explicit OpenFile(const std::string& path)
      : number(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number >= 0) close(number);
  }
};

}  // namespace

bool holds_password(std::string_view text) {
  return has_password_in_url(text) || has_password_setting(text);
}

tl::expected<GivenFile, std::string> read_given_file(const std::string& path) {
  const auto failed = [&] {
    return tl::unexpected(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  };
  const OpenFile file(path);
  struct stat facts {};
  if (file.number < 0 || fstat(file.number, &facts) != 0) return failed();
  GivenFile given{.text = {}, .exposed = exposure(facts, path)};
  std::array<char, 4096> piece;
  // A pipe has no size to ask for.
  while (given.text.size() <= kLargestFile) {
    const ssize_t got = ::read(file.number, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) break;
    given.text.append(piece.data(), static_cast<std::size_t>(got));
  }
  if (given.text.size() > kLargestFile) {
    return tl::unexpected(fmt::format("{}: larger than 1 MiB", path));
  }
  return given;
}

std::vector<std::string> lines_with_values(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) continue;
    lines.emplace_back(line.substr(first, line.find_last_not_of(kBlanks) + 1 - first));
  }
  return lines;
}

tl::expected<std::vector<std::string>, std::string> read_secrets(const std::string& path) {
  const auto file = read_given_file(path);
  if (!file) return tl::unexpected(file.error());
  if (!file->exposed.empty()) return tl::unexpected(fmt::format("{}: {}", path, file->exposed));
  std::vector<std::string> lines = lines_with_values(file->text);
  if (lines.empty()) return tl::unexpected(fmt::format("{}: the file is empty", path));
  return lines;
}

std::string environment_name(std::string_view option) {
  std::string name = "LOCKBENCH_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace lockbench::cli
