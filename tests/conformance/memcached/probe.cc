#include "tests/conformance/memcached/probe.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

#include "tests/support/eventually.h"
#include "tests/support/servers.h"

namespace lockbench::test {

namespace {

bool begins_with_one_of(std::string_view line, std::string_view beginnings) {
  while (true) {
    const std::size_t end = beginnings.find('|');
    if (line.starts_with(beginnings.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    beginnings.remove_prefix(end + 1);
  }
}

}  // namespace

MemcachedProbe::MemcachedProbe(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval limit{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what the sockets want
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket_);
    throw std::runtime_error("cannot reach the memcached");
  }
  const std::string login = fmt::format("{} {}", testbed::kUser, shared_testbed().secret());
  ask(fmt::format("set login 0 0 {}\r\n{}", login.size(), login), "STORED");
}

MemcachedProbe::~MemcachedProbe() { ::close(socket_); }

std::vector<std::string> MemcachedProbe::ask(const std::string& command, const std::string& last) {
  const std::string line = command + "\r\n";
  if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    throw std::runtime_error(command + " could not be sent");
  }
  std::string text;
  std::array<char, 4096> buffer{};
  // Bounded by the time-out of each read, and by what a test's server holds.
  while (true) {
    const std::size_t end = text.rfind("\r\n");
    const std::size_t begin = end == std::string::npos || end == 0 ? 0 : text.rfind('\n', end - 1);
    const std::size_t first = begin == std::string::npos || begin == 0 ? 0 : begin + 1;
    if (end != std::string::npos && end + 2 == text.size() &&
        begins_with_one_of(std::string_view(text).substr(first), last)) {
      break;
    }
    const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (got <= 0) throw std::runtime_error(command + " got no answer");
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one);) lines.push_back(one.substr(0, one.find('\r')));
  return lines;
}

std::optional<int> MemcachedProbe::time_to_live(const std::string& key) {
  // "HD t11", or "EN" for what is not there.
  const std::string answer = ask("mg " + key + " t", "").front();
  if (!answer.starts_with("HD t")) return std::nullopt;
  return std::stoi(answer.substr(4));
}

std::vector<std::string> MemcachedProbe::keys() {
  std::vector<std::string> keys;
  // One dump at a time, also with the server's own.
  std::vector<std::string> dump;
  const auto dumped = [&] {
    dump = ask("lru_crawler metadump all", "END|BUSY");
    return !dump.front().starts_with("BUSY");
  };
  if (!eventually(dumped)) throw std::runtime_error("memcached's crawler stays busy");
  for (const std::string& line : dump) {
    if (!line.starts_with("key=")) continue;
    // Percent-encoded, what our tests' keys contain of it at least.
    std::string key;
    const std::string encoded = line.substr(4, line.find(' ') - 4);
    for (std::size_t i = 0; i < encoded.size(); ++i) {
      if (encoded[i] != '%') {
        key += encoded[i];
        continue;
      }
      key += static_cast<char>(std::stoi(encoded.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    // The dump may list what has expired.
    if (time_to_live(key)) keys.push_back(key);
  }
  return keys;
}

std::map<std::string, std::string> MemcachedProbe::stats() {
  std::map<std::string, std::string> stats;
  for (const std::string& line : ask("stats", "END")) {
    std::istringstream words(line);
    std::string stat, name, value;
    if (words >> stat >> name >> value) stats[name] = value;
  }
  return stats;
}

}  // namespace lockbench::test
