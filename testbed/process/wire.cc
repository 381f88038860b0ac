#include "testbed/process/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>

namespace lockbench::testbed::wire {
namespace {

constexpr std::size_t kLongest = std::size_t{64} << 10;

/// A message of one part, with room for one descriptor.
struct Envelope {
  explicit Envelope(std::string& text) : part{text.data(), text.size()} {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
  }
  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
};

}  // namespace

bool send(int socket, const std::vector<std::string>& fields, int file) {
  std::string text;
  for (const std::string& field : fields) text.append(field).push_back('\0');
  if (text.size() > kLongest) return false;
  Envelope envelope(text);
  if (file < 0) {
    envelope.message.msg_controllen = 0;
  } else {
    cmsghdr* const header = CMSG_FIRSTHDR(&envelope.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  const ssize_t sent = TEMP_FAILURE_RETRY(sendmsg(socket, &envelope.message, MSG_NOSIGNAL));
  return sent == static_cast<ssize_t>(text.size());
}

std::optional<std::vector<std::string>> receive(int socket, int* file) {
  std::string text(kLongest, '\0');
  Envelope envelope(text);
  const ssize_t got = TEMP_FAILURE_RETRY(recvmsg(socket, &envelope.message, MSG_CMSG_CLOEXEC));
  if (got <= 0) return std::nullopt;
  const cmsghdr* const header = CMSG_FIRSTHDR(&envelope.message);
  if (file != nullptr && header != nullptr) std::memcpy(file, CMSG_DATA(header), sizeof *file);
  text.resize(static_cast<std::size_t>(got));
  std::istringstream message(text);
  std::vector<std::string> fields;
  for (std::string field; std::getline(message, field, '\0');) fields.push_back(field);
  return fields;
}

short await(int socket, short events, std::chrono::steady_clock::time_point deadline) {
  pollfd file{socket, events, 0};
  int ready = 0;
  do {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    ready = poll(&file, 1, static_cast<int>(std::max<long>(left.count(), 0)));
  } while (ready < 0 && errno == EINTR);
  return file.revents;
}

}  // namespace lockbench::testbed::wire
