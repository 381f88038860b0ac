#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/failure.h"
#include "testbed/process/parallel.h"

namespace lockbench::testbed {

struct TlsFiles;

/// Proposes a port for a new server.
using PortChooser = std::function<tl::expected<std::uint16_t, std::string>()>;

/// A loopback TCP port that is free at this moment, if possible below the kernel's range of
/// ephemeral ports: from that range the kernel could give a server's port, while it is down, to a
/// reconnecting client, which could even connect to itself. Thread-safe.
tl::expected<std::uint16_t, std::string> free_loopback_port();

/// `count` different ports; an error if the chooser keeps proposing the same ones.
tl::expected<std::vector<std::uint16_t>, std::string> distinct_ports(const PortChooser& choose,
                                                                     std::size_t count);

/// A first request, and the answer if the server accepts it.
struct Login {
  std::string_view line, accepted;
};

/// Sends `request` to the port and returns the answer up to the point where `whole` finds it
/// complete or the other side closes; an error if neither happens in time. With TLS if there are
/// files for it. Sends the login first, if any, and returns its answer if it is refused.
/// Thread-safe.
tl::expected<std::string, std::string> ask_until(std::uint16_t port, std::string_view request,
                                                 std::chrono::milliseconds within,
                                                 const std::function<bool(std::string_view)>& whole,
                                                 const TlsFiles* tls = nullptr,
                                                 const Login& login = {});
/// The same through the unix socket of that path.
tl::expected<std::string, std::string> ask_until(
    const std::filesystem::path& socket, std::string_view request, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole);

/// Part of the error if another process took the port first.
inline constexpr std::string_view kPortTaken = "Address already in use";
inline bool says_port_taken(std::string_view error) {
  return error.find(kPortTaken) != std::string_view::npos;
}
/// Starts all members of a cluster side by side, as none is ready before most are, and tries other
/// ports if another process took one first. `choose` proposes ports for all; `start` starts one
/// member, counted from 0, and is called by several threads. Both may throw Failure.
template <typename Server, typename Member>
tl::expected<std::vector<std::unique_ptr<Server>>, std::string> start_all_on_free_ports(
    const std::function<std::vector<Member>()>& choose,
    const std::function<std::unique_ptr<Server>(std::size_t number,
                                                const std::vector<Member>& all)>& start) {
  using Started = tl::expected<std::unique_ptr<Server>, std::string>;
  const auto lost_its_port = [](const Started& one) {
    return !one && says_port_taken(one.error());
  };
  constexpr int kAttempts = 5;
  std::string error;
  for (int attempts = 0; attempts < kAttempts; ++attempts) {
    const auto members = attempt(choose);
    if (!members) return tl::unexpected(members.error());
    std::vector<Started> all(members->size());
    in_parallel(all.size(),
                [&](std::size_t i) { all[i] = attempt([&] { return start(i, *members); }); });
    // A member without its port leaves the others without a majority: reports the port, not the
    // majority.
    auto failed = std::ranges::find_if(all, lost_its_port);
    const bool again = failed != all.end();
    if (!again) failed = std::ranges::find(all, false, &Started::has_value);
    if (failed == all.end()) {
      std::vector<std::unique_ptr<Server>> servers;
      servers.reserve(all.size());
      for (Started& one : all) servers.push_back(*std::move(one));
      return servers;
    }
    error = std::move(failed->error());
    if (!again) break;
  }
  return tl::unexpected(std::move(error));
}

/// The same for a single server.
template <typename Server>
tl::expected<std::unique_ptr<Server>, std::string> start_on_free_port(
    const PortChooser& choose, const std::function<std::unique_ptr<Server>(std::uint16_t)>& start) {
  using Ports = std::vector<std::uint16_t>;
  return start_all_on_free_ports<Server, std::uint16_t>(
             [&] { return need(distinct_ports(choose, 1)); },
             [&](std::size_t /*number*/, const Ports& ports) { return start(ports.front()); })
      .map([](auto servers) { return std::move(servers.front()); });
}

}  // namespace lockbench::testbed
