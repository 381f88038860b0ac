#include "hazards/messages.h"

#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>

#include "loadgen/cluster/wire.h"

namespace lockbench::hazards {

template <class Message>
bool send(int socket, const Message& message) {
  const std::string bytes = loadgen::cluster::to_bytes(message);
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
}

template <class Message>
std::optional<Message> receive(int socket) {
  constexpr std::size_t kLongest = std::size_t{64} << 10;
  std::string bytes(kLongest, '\0');
  const ssize_t size = TEMP_FAILURE_RETRY(recv(socket, bytes.data(), bytes.size(), 0));
  if (size <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size));
  Message message;
  if (!loadgen::cluster::from_bytes(bytes, message)) {
    throw std::runtime_error("it is no message of this kind");
  }
  return message;
}

template bool send(int, const ClientSetup&);
template bool send(int, const Request&);
template bool send(int, const Answer&);
template std::optional<ClientSetup> receive(int);
template std::optional<Request> receive(int);
template std::optional<Answer> receive(int);

}  // namespace lockbench::hazards
