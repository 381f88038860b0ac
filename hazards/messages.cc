#include "hazards/messages.h"

#include <sys/socket.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace nlohmann {

template <typename Value>
struct adl_serializer<std::optional<Value>> {
  static void to_json(json& text, const std::optional<Value>& value) {
    text = value ? json(*value) : json(nullptr);
  }
  static void from_json(const json& text, std::optional<Value>& value) {
    value = text.is_null() ? std::nullopt : std::optional(text.get<Value>());
  }
};

template <>
struct adl_serializer<lockbench::Duration> {
  static void to_json(json& text, lockbench::Duration value) { text = value.count(); }
  static void from_json(const json& text, lockbench::Duration& value) {
    value = lockbench::Duration(text.get<std::int64_t>());
  }
};

template <>
struct adl_serializer<lockbench::TimePoint> {
  static void to_json(json& text, lockbench::TimePoint value) { text = value.time_since_epoch(); }
  static void from_json(const json& text, lockbench::TimePoint& value) {
    value = lockbench::TimePoint(text.get<lockbench::Duration>());
  }
};

}  // namespace nlohmann

namespace lockbench::hazards {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ActorSettings, number, renews, checks_fencing, wait, renew_cap,
                                   wait_replicas, node_timeout)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClientSetup, strategy, program, about, ttl, endpoints, counter,
                                   settings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandFault, action, command, place)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Request, what, lease, key, ttl, within, at, release_at_once,
                                   fault, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Grant, outcome, asked_at, answered_at, valid_until, fencing,
                                   lease, commands, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Belief, valid, until)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Answer, error, cannot, waiting, at, grant, released,
                                   release_commands, renewed, belief, counter, written)

template <class Message>
bool send(int socket, const Message& message) {
  const std::string text = json(message).dump();
  return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
}

template <class Message>
std::optional<Message> receive(int socket) {
  constexpr std::size_t kLongest = std::size_t{64} << 10;
  std::string text(kLongest, '\0');
  ssize_t size = 0;
  do {
    size = recv(socket, text.data(), text.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  return json::parse(text).get<Message>();
}

template bool send(int, const ClientSetup&);
template bool send(int, const Request&);
template bool send(int, const Answer&);
template std::optional<ClientSetup> receive(int);
template std::optional<Request> receive(int);
template std::optional<Answer> receive(int);

}  // namespace lockbench::hazards
