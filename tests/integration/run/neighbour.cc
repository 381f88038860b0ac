#include "tests/integration/run/neighbour.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include "testbed/servers/ports.h"
#include "tests/support/eventually.h"
#include "tests/support/zookeeper_bytes.h"

namespace lockbench::test {
namespace {

using jute::number;
using jute::text;

constexpr unsigned kNobody = 65'534;

std::string int32(int value) { return number(value, 4); }

int read_int32(std::string_view bytes) { return static_cast<int>(jute::number_at(bytes, 0, 4)); }

/// Messages that are whole.
std::vector<std::string> frames_of(std::string_view bytes) {
  std::vector<std::string> frames;
  while (bytes.size() >= 4) {
    const auto size = static_cast<std::size_t>(std::max(read_int32(bytes), 0));
    if (bytes.size() - 4 < size) break;
    frames.emplace_back(bytes.substr(4, size));
    bytes.remove_prefix(4 + size);
  }
  return frames;
}

std::string everybody() {
  constexpr int kAllRights = 31;
  return int32(1) + int32(kAllRights) + text("world") + text("anyone");
}

}  // namespace

std::string as_neighbour(const std::function<std::string()>& attempt) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    std::string said = "cannot become another user";
    if (setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0) {
      said = attempt();
    }
    const bool whole =
        write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = read(ends[0], bytes.data(), bytes.size())) > 0;) {
    said.append(bytes.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + "\nthe neighbour's process failed";
}

std::string not_refused(std::uint16_t port, const std::vector<std::string>& requests,
                        const std::vector<std::string_view>& refusals) {
  std::string complaints;
  for (const std::string& request : requests) {
    const auto refused = [&](std::string_view answer) {
      return std::any_of(refusals.begin(), refusals.end(), [&](auto refusal) {
        return answer.find(refusal) != std::string_view::npos;
      });
    };
    const auto answer = testbed::ask_until(port, request + "\r\n", kPatience, refused);
    if (!answer || !refused(*answer)) {
      complaints += fmt::format("{}: {}\n", request, answer ? *answer : answer.error());
    }
  }
  return complaints;
}

namespace zookeeper_requests {
ZookeeperRequest create(std::string_view path) {
  return {1, text(path) + text("x") + everybody() + int32(0)};
}
ZookeeperRequest remove(std::string_view path) { return {2, text(path) + int32(-1)}; }
ZookeeperRequest get(std::string_view path) { return {4, text(path) + '\0'}; }
ZookeeperRequest set(std::string_view path) { return {5, text(path) + text("x") + int32(-1)}; }
ZookeeperRequest open_to_all(std::string_view path) {
  return {7, text(path) + everybody() + int32(-1)};
}
ZookeeperRequest children(std::string_view path) { return {8, text(path) + '\0'}; }
}  // namespace zookeeper_requests

std::vector<std::string> ZookeeperReply::names() const {
  std::vector<std::string> names;
  const int count = body.size() < 4 ? 0 : read_int32(body);
  std::size_t at = 4;
  for (int i = 0; i < count && at + 4 <= body.size(); ++i) {
    const auto size = static_cast<std::size_t>(read_int32(std::string_view(body).substr(at)));
    names.push_back(body.substr(at + 4, size));
    at += 4 + size;
  }
  return names;
}

std::vector<ZookeeperReply> ask_zookeeper(std::uint16_t port, std::string_view login,
                                          const std::vector<ZookeeperRequest>& requests) {
  constexpr int kTimeoutMs = 10'000, kAuthXid = -4, kAuth = 100;
  constexpr std::size_t kHeader = 16, kCodeAt = 12;
  std::string bytes = text(int32(0) + number(0, 8) + int32(kTimeoutMs) + number(0, 8) +
                           text(std::string(16, '\0')));
  std::size_t before = 1;
  if (!login.empty()) {
    bytes += text(int32(kAuthXid) + int32(kAuth) + int32(0) + text("digest") + text(login));
    ++before;
  }
  int xid = 0;
  for (const auto& [type, body] : requests) bytes += text(int32(++xid) + int32(type) + body);
  const std::size_t expected = before + requests.size();
  const auto answer = testbed::ask_until(port, bytes, kPatience, [&](std::string_view received) {
    return frames_of(received).size() >= expected;
  });
  if (!answer) throw std::runtime_error("ZooKeeper: " + answer.error());
  const auto frames = frames_of(*answer);
  std::vector<ZookeeperReply> replies;
  for (std::size_t i = before; i < frames.size(); ++i) {
    if (frames[i].size() < kHeader) throw std::runtime_error("ZooKeeper: a short answer");
    replies.push_back(
        {read_int32(std::string_view(frames[i]).substr(kCodeAt)), frames[i].substr(kHeader)});
  }
  if (replies.size() != requests.size()) throw std::runtime_error("ZooKeeper: too few answers");
  return replies;
}

}  // namespace lockbench::test
