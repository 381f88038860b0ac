#include "tests/conformance/zookeeper/probe.h"

#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "testbed/servers/ports.h"

namespace lockbench::test {
namespace {

/// Big end first, as ZooKeeper speaks.
std::string bytes_of(std::uint64_t number, int size) {
  std::string bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(number >> shift);
  }
  return bytes;
}

/// As the server makes it from the session's number, by Java's random numbers.
std::string password_of(std::int64_t session) {
  constexpr std::uint64_t kServersSecret = 0xB3415C00, kFactor = 0x5DEECE66D;
  constexpr std::uint64_t kMask = (1ULL << 48) - 1;
  constexpr std::size_t kSize = 16;
  std::string password;
  std::uint64_t seed = ((static_cast<std::uint64_t>(session) ^ kServersSecret) ^ kFactor) & kMask;
  while (password.size() < kSize) {
    seed = (seed * kFactor + 0xB) & kMask;
    for (int byte = 0; byte < 4; ++byte) password += static_cast<char>(seed >> (16 + 8 * byte));
  }
  return password;
}

/// Returns when it is connected.
zhandle_t* connect_to(std::uint16_t port) {
  constexpr int kTimeoutMs = 60'000;
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  zhandle_t* const handle =
      zookeeper_init2(fmt::format("127.0.0.1:{}", port).c_str(), nullptr, kTimeoutMs, nullptr,
                      nullptr, ZOO_NO_LOG_CLIENTENV, [](const char*) {});
  for (int look = 0; look < 2000 && zoo_state(handle) != ZOO_CONNECTED_STATE; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return handle;
}

/// A server that was away may be reached only after some trials.
int again_while_lost(const auto& call) {
  int code = ZCONNECTIONLOSS;
  for (int trial = 0; trial < 400 && code == ZCONNECTIONLOSS; ++trial) {
    if (trial > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    code = call();
  }
  return code;
}

void must(int code, const std::string& path) {
  if (code != ZOK) throw std::runtime_error(fmt::format("{}: {}", path, zerror(code)));
}

}  // namespace

void ZookeeperProbe::Close::operator()(_zhandle* handle) const { zookeeper_close(handle); }

ZookeeperProbe::ZookeeperProbe(std::uint16_t port) : handle_(connect_to(port)) {}

std::vector<std::string> ZookeeperProbe::children(const std::string& path) {
  String_vector names{};
  const int code =
      again_while_lost([&] { return zoo_get_children(handle_.get(), path.c_str(), 0, &names); });
  if (code == ZNONODE) return {};
  must(code, path);
  std::vector<std::string> children(names.data, names.data + names.count);
  deallocate_String_vector(&names);
  return children;
}

ZookeeperProbe::Facts ZookeeperProbe::look(const std::string& path) {
  Stat stat{};
  const int code =
      again_while_lost([&] { return zoo_exists(handle_.get(), path.c_str(), 0, &stat); });
  if (code == ZNONODE) return {};
  must(code, path);
  return {.there = true, .owner = stat.ephemeralOwner};
}

void ZookeeperProbe::make(const std::string& path) {
  must(again_while_lost([&] {
         return zoo_create(handle_.get(), path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                           nullptr, 0);
       }),
       path);
}

std::string ZookeeperProbe::make_contender(const std::string& path) {
  std::array<char, 512> made{};
  must(again_while_lost([&] {
         return zoo_create(handle_.get(), path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                           ZOO_EPHEMERAL_SEQUENTIAL, made.data(), static_cast<int>(made.size()));
       }),
       path);
  return made.data();
}

bool ZookeeperProbe::remove(const std::string& path) {
  const int code = again_while_lost([&] { return zoo_delete(handle_.get(), path.c_str(), -1); });
  if (code == ZNONODE) return false;
  must(code, path);
  return true;
}

void ZookeeperProbe::remove_tree(const std::string& path) {
  for (const std::string& child : children(path)) remove_tree(fmt::format("{}/{}", path, child));
  // Somebody who is just leaving may come between.
  const int code = zoo_delete(handle_.get(), path.c_str(), -1);
  if (code == ZNOTEMPTY) return remove_tree(path);
  if (code != ZNONODE) must(code, path);
}

void ZookeeperProbe::end_session(std::uint16_t port, std::int64_t session) {
  constexpr std::uint64_t kTimeoutMs = 10'000, kCloseSession = static_cast<std::uint32_t>(-11);
  const std::string password = password_of(session);
  const std::string join = bytes_of(0, 4) + bytes_of(0, 8) + bytes_of(kTimeoutMs, 4) +
                           bytes_of(static_cast<std::uint64_t>(session), 8) +
                           bytes_of(password.size(), 4) + password;
  const std::string end = bytes_of(1, 4) + bytes_of(kCloseSession, 4);
  const std::string both = bytes_of(join.size(), 4) + join + bytes_of(end.size(), 4) + end;
  const std::string name = fmt::format("{:#x}", session);
  // The server closes the connection when it has done both.
  const auto whole = [](std::string_view) { return false; };
  (void)testbed::ask_until(port, both, std::chrono::seconds(5), whole);
  if (four_letters(port, "dump").find(name) != std::string::npos) {
    throw std::runtime_error("the session could not be ended");
  }
}

std::string four_letters(std::uint16_t port, const std::string& letters) {
  // The server closes the connection when it has said all.
  const auto whole = [](std::string_view) { return false; };
  const auto answer = testbed::ask_until(port, letters, std::chrono::seconds(5), whole);
  if (!answer) throw std::runtime_error(answer.error());
  return *answer;
}

}  // namespace lockbench::test
