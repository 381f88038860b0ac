#include "strategies/zookeeper/client/version.h"

#include <array>
#include <stop_token>

#include "strategies/transport/socket.h"

namespace lockbench::zookeeper {

std::optional<std::string> version_in(std::string_view answer) {
  constexpr std::string_view kLabel = "Zookeeper version: ";
  const std::size_t label = answer.find(kLabel);
  if (label == std::string_view::npos) return std::nullopt;
  const std::string_view rest = answer.substr(label + kLabel.size());
  const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
  if (version.empty()) return std::nullopt;
  return std::string(version);
}

std::optional<std::string> version_of(const HostPort& server, const TlsSettings* tls,
                                      Duration timeout) {
  const auto dialling =
      begin_connecting({.host = server.host, .port = server.port}, timeout, timeout, tls);
  if (!dialling) return std::nullopt;
  const auto socket = (*dialling)->get(timeout, {});
  if (!socket || !*socket || (*socket)->send("srvr", timeout) != Transport::Status::ok) {
    return std::nullopt;
  }
  std::string answer;
  std::array<char, 1024> bytes{};
  // The version is in the first line.
  while (answer.find('\n') == std::string::npos && answer.size() < bytes.size()) {
    const auto got = (*socket)->receive(bytes, timeout, {});
    if (got.status != Transport::Status::ok) break;
    answer.append(bytes.data(), got.bytes);
  }
  return version_in(answer);
}

}  // namespace lockbench::zookeeper
