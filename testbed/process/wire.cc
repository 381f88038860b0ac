#include "testbed/process/wire.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace lockbench::testbed::wire {
namespace {

constexpr std::size_t kLongest = std::size_t{64} << 10;

}  // namespace

bool send(int socket, const std::vector<std::string>& fields) {
  std::string message;
  for (const std::string& field : fields) message.append(field).push_back('\0');
  if (message.size() > kLongest) return false;
  ssize_t sent = 0;
  do {
    sent = ::send(socket, message.data(), message.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

std::optional<std::vector<std::string>> receive(int socket) {
  std::string message(kLongest, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(socket, message.data(), message.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  std::vector<std::string> fields;
  std::string_view rest(message.data(), static_cast<std::size_t>(got));
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    fields.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return fields;
}

}  // namespace lockbench::testbed::wire
