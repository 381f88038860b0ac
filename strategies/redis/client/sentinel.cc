#include "strategies/redis/client/sentinel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/number.h"
#include "strategies/redis/client/protocol.h"

namespace lockbench::redis {
namespace {

/// The host and port in the answer; nothing if it is something else.
std::optional<Endpoint> address_in(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  const std::string& host = reply.elements[0].text;
  const auto port = parse_number<std::uint16_t>(reply.elements[1].text);
  if (host.empty() || !port || *port == 0) return std::nullopt;
  return Endpoint{.host = host, .port = *port};
}

/// The password is sent only to a sentinel that asks for one: many have none.
tl::expected<Reply, std::string> ask_sentinel(Transport& transport, const Endpoint& endpoint,
                                              Command command, Duration timeout,
                                              const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + timeout;
  const auto left = [&] { return std::max(end - Carrier::current().now(), Duration::zero()); };
  ReplyReader reader;
  auto reply = exchange_once(transport, reader, command, timeout, stop);
  const bool asks = reply && reply->code == StoreError::Code::no_login;
  if (!asks || endpoint.password.empty()) return reply;
  std::vector<std::string_view> login{"AUTH", endpoint.user, endpoint.password};
  if (endpoint.user.empty()) login.erase(login.begin() + 1);
  auto done = exchange_once(transport, reader, login, left(), stop);
  if (!done) return done;
  if (!done->is_text("OK")) return tl::unexpected(why_not_logged_in(*done));
  return exchange_once(transport, reader, command, left(), stop);
}

}  // namespace

tl::expected<Endpoint, std::string> find_master(const Endpoint& endpoint, const AskServer& ask) {
  std::string failure = "none was given";
  for (const HostPort& sentinel : endpoint.sentinels) {
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
                                                                : "its answer is not an address";
    failure = fmt::format("{}: {}", server.display(), why);
  }
  return tl::unexpected(fmt::format("no sentinel knows the master; {}", failure));
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_server(const Endpoint& endpoint,
                                                                     const Timeouts& timeouts,
                                                                     const std::stop_token& stop) {
  const TlsSettings* const tls = endpoint.tls.get();
  if (endpoint.sentinels.empty()) return connect_socket(endpoint.address(), timeouts, stop, tls);
  // As connect_socket() does it; the sentinels and the server have one half each.
  if (stop.stop_requested()) {
    return connect_server(endpoint, time_to_connect_after_stop(timeouts) / 2, {});
  }
  // A sentinel that hangs must not use up the time of the others. Connecting and answering get one
  // share each.
  const Duration share = timeouts.answer / (2 * static_cast<int>(endpoint.sentinels.size()));
  const auto ask = [&](const Endpoint& server,
                       Command command) -> tl::expected<Reply, std::string> {
    // Without this, the remaining sentinels would be tried one after the other.
    if (stop.stop_requested()) return tl::unexpected<std::string>("stopped before it was asked");
    auto transport = connect_socket(server.address(), share, stop, tls);
    if (!transport) return tl::unexpected(transport.error());
    return ask_sentinel(**transport, endpoint, command, share, stop);
  };
  const auto master = find_master(endpoint, ask);
  if (!master) return tl::unexpected(master.error());
  auto transport = connect_socket(master->address(), timeouts, stop, tls);
  if (transport) return transport;
  return tl::unexpected(fmt::format("{}: {}", master->display(), transport.error()));
}

}  // namespace lockbench::redis
