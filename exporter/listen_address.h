#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::exporter {

/// Where metrics are served.
struct ListenAddress {
  std::string host = "127.0.0.1";  ///< an IPv4 or IPv6 address, without brackets
  std::uint16_t port = 0;          ///< 0: a free one

  /// "127.0.0.1:9464", "[::1]:9464"
  std::string to_string() const;
};

/// "ADDR:PORT", "[ADDR]:PORT", "localhost:PORT"; ":PORT" and "PORT" alone are the loopback's. The
/// error is one line that quotes the text.
tl::expected<ListenAddress, std::string> parse_listen_address(std::string_view text);

/// Binds the address and listens, without blocking; the caller owns the descriptor. `address.port`
/// becomes the one in force. The error names the address and why it cannot be had.
tl::expected<int, std::string> listen_on(ListenAddress& address);

}  // namespace lockbench::exporter
