#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/url.h"

namespace lockbench::exporter {

/// Where metrics are served.
struct ListenAddress {
  std::string host = "127.0.0.1";  ///< an IPv4 or IPv6 address, without brackets
  std::uint16_t port = 0;          ///< 0: any free port

  /// "127.0.0.1:9464", "[::1]:9464"
  std::string to_string() const { return display_address(host, std::to_string(port)); }
};

/// Reads "ADDR:PORT", "[ADDR]:PORT" and "localhost:PORT"; ":PORT" and "PORT" mean the loopback
/// address. The error is one line that quotes the text.
tl::expected<ListenAddress, std::string> parse_listen_address(std::string_view text);

/// Binds the address and listens, without blocking; the caller owns the descriptor. Sets
/// `address.port` to the port in use. The error names the address and the reason.
tl::expected<int, std::string> listen_on(ListenAddress& address);

}  // namespace lockbench::exporter
