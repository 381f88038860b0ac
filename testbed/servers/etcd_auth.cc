#include "testbed/servers/etcd_auth.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Answer = tl::expected<std::string, std::string>;

class LocalSocket {
 public:
  LocalSocket() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  LocalSocket(const LocalSocket&) = delete;
  LocalSocket& operator=(const LocalSocket&) = delete;
  ~LocalSocket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// What etcd's gateway from HTTP to its API answers.
Answer post(const fs::path& path, std::string_view method, std::string_view body) {
  const auto failed = [](std::string_view what) {
    return tl::unexpected(fmt::format("{}: {}", what, std::strerror(errno)));
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) {
    return tl::unexpected(
        fmt::format("{} is too long for a unix socket: set a shorter TMPDIR", path.string()));
  }
  std::copy(path.native().begin(), path.native().end(), std::begin(address.sun_path));
  const LocalSocket line;
  const timeval limit{.tv_sec = 3, .tv_usec = 0};
  setsockopt(line.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(line.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(line.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("connect");
  }
  const std::string request = fmt::format(
      "POST /v3/auth/{} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      method, body.size(), body);
  if (send(line.fd(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return failed("send");
  }
  constexpr std::size_t kLongest = 65'536;
  std::string answer;
  std::array<char, 4096> bytes{};
  // It closes the connection after the answer.
  while (answer.size() < kLongest) {
    const ssize_t got = recv(line.fd(), bytes.data(), bytes.size(), 0);
    if (got < 0) return failed("recv");
    if (got == 0) break;
    answer.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

/// A cluster may just be electing another leader, and what was not answered may have been done.
bool done(const Answer& answer) {
  return answer && (answer->find(" 200 ") < answer->find('\n') ||
                    answer->find("already exists") != std::string::npos);
}

}  // namespace

tl::expected<void, std::string> enable_etcd_auth(const fs::path& socket,
                                                 const std::string& secret) {
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::chrono::milliseconds kPause{50};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const std::array<std::array<std::string, 2>, 3> steps{
      {{"user/add", fmt::format(R"({{"name":"{}","password":"{}"}})", kEtcdRoot, secret)},
       {"user/grant", fmt::format(R"({{"user":"{0}","role":"{0}"}})", kEtcdRoot)},
       {"enable", "{}"}}};
  for (const auto& [method, body] : steps) {
    Answer answer = post(socket, method, body);
    while (!done(answer)) {
      if (std::chrono::steady_clock::now() > deadline) {
        return tl::unexpected(fmt::format("etcd: authentication cannot be enabled: {}: {}", method,
                                          answer ? *answer : answer.error()));
      }
      std::this_thread::sleep_for(kPause);
      answer = post(socket, method, body);
    }
  }
  return {};
}

}  // namespace lockbench::testbed
