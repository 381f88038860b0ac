#include "testbed/servers/programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

namespace lockbench::testbed {

tl::expected<std::filesystem::path, std::string> find_program(const Program& program) {
  const char* path = std::getenv("PATH");
  return find_program(program, path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
}

tl::expected<std::filesystem::path, std::string> find_program(const Program& program,
                                                              std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = path.find(':');
    const std::string_view folder = path.substr(0, end);
    path = end == std::string_view::npos ? std::string_view{} : path.substr(end + 1);
    const auto candidate = std::filesystem::path(folder.empty() ? "." : folder) / program.name;
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) &&
        access(candidate.c_str(), X_OK) == 0) {
      return std::filesystem::absolute(candidate);
    }
  }
  return tl::unexpected(
      fmt::format("{} not found: install the package {}", program.name, program.package));
}

tl::expected<std::filesystem::path, std::string> find_beside(std::string_view name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return tl::unexpected(fmt::format("/proc/self/exe: {}", error.message()));
  auto beside = self.parent_path() / name;
  if (std::filesystem::exists(beside, error)) return beside;
  return tl::unexpected(
      fmt::format("{} is missing: it belongs beside the program", beside.string()));
}

}  // namespace lockbench::testbed
