#include "strategies/redis/client/sentinel.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "strategies/redis/client/protocol.h"

namespace lockbench::redis {
namespace {

/// Nothing unless it is a host and a port.
std::optional<Endpoint> address_in(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  Endpoint address{.host = reply.elements[0].text};
  const std::string& port = reply.elements[1].text;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  if (address.host.empty() || address.port < 1 || address.port > 65535) return std::nullopt;
  return address;
}

/// On a connection of its own.
tl::expected<Reply, std::string> ask_once(const Endpoint& server, Command command, Duration timeout,
                                          const std::stop_token& stop) {
  auto transport = connect_socket(server, timeout, stop);
  if (!transport) return tl::unexpected(transport.error());
  std::string bytes;
  append_command(bytes, command);
  Transport::Status status = (*transport)->send(bytes, timeout);
  ReplyReader reader;
  std::array<char, 4096> buffer{};
  constexpr int kMostPieces = 16;
  for (int pieces = 0; status == Transport::Status::ok && pieces < kMostPieces; ++pieces) {
    auto reply = reader.next();
    if (!reply) return tl::unexpected(reply.error());
    if (*reply) return std::move(**reply);
    const Transport::Received got = (*transport)->receive(buffer, timeout, stop);
    status = got.status;
    reader.feed({buffer.data(), got.bytes});
  }
  return tl::unexpected(describe(status, timeout));
}

}  // namespace

tl::expected<Endpoint, std::string> find_master(const Endpoint& endpoint, const AskServer& ask) {
  std::string failure = "none was given";
  for (const Endpoint::Sentinel& sentinel : endpoint.sentinels) {
    const Endpoint server{.host = sentinel.host, .port = sentinel.port};
    const std::array<std::string_view, 3> words{"SENTINEL", "get-master-addr-by-name",
                                                endpoint.master};
    const auto reply = ask(server, words);
    if (reply) {
      if (const auto address = address_in(*reply)) {
        Endpoint master = endpoint;
        master.sentinels.clear();
        master.host = address->host;
        master.port = address->port;
        return master;
      }
    }
    const std::string why = !reply            ? reply.error()
                            : reply->is_nil() ? "it does not watch " + endpoint.master
                            : reply->type == Reply::Type::error ? reply->text
                                                                : "its answer is no address";
    failure = fmt::format("{}: {}", server.display(), why);
  }
  return tl::unexpected(fmt::format("no sentinel tells where the master is; {}", failure));
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_server(const Endpoint& endpoint,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop) {
  if (endpoint.sentinels.empty()) return connect_socket(endpoint, timeout, stop);
  // One that hangs must not take the others' time: connecting and answering get a share each.
  const Duration share = timeout / (2 * static_cast<int>(endpoint.sentinels.size()));
  const auto ask = [&](const Endpoint& server,
                       Command command) -> tl::expected<Reply, std::string> {
    // The rest of them would take their time one after the other.
    if (stop.stop_requested()) return tl::unexpected<std::string>("stopped before it was asked");
    return ask_once(server, command, share, stop);
  };
  const auto master = find_master(endpoint, ask);
  if (!master) return tl::unexpected(master.error());
  auto transport = connect_socket(*master, timeout, stop);
  if (transport) return transport;
  return tl::unexpected(fmt::format("{}: {}", master->display(), transport.error()));
}

}  // namespace lockbench::redis
