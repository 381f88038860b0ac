#include "tests/integration/testbed/support.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace lockbench::testbed {

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

bool pid_is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

bool has_ended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  // Reading fails where the process goes meanwhile; getline() does not throw then.
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos || text.substr(name_end, 3) == ") Z";
}

std::string ask(std::uint16_t port, const std::string& command) {
  const auto answer = ask_line(port, command + "\r\n", std::chrono::seconds(1));
  return answer ? *answer : "error: " + answer.error();
}

std::unique_ptr<Testbed> must_start() {
  auto testbed = Testbed::start();
  if (!testbed) throw std::runtime_error(testbed.error());
  return *std::move(testbed);
}

RedisOptions open_to_all(RedisOptions options) {
  options.users.emplace_back("default on nopass ~* &* +@all");
  return options;
}

std::unique_ptr<Server> must_start_redis(Testbed& testbed, const RedisOptions& options) {
  auto server = start_redis(testbed, open_to_all(options));
  if (!server) throw std::runtime_error(server.error());
  return *std::move(server);
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace lockbench::testbed
