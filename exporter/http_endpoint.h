#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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

struct Page {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
};

/// Serves pages for GET and HEAD on its own thread. Connections take no further threads, and
/// bounded memory whatever they send. Idle ones are closed after a few seconds, and slow requests
/// when others come.
class HttpEndpoint {
 public:
  /// Called on the endpoint's thread, with the path alone. If it throws, the answer is status 500.
  using Answer = std::function<Page(std::string_view path)>;

  /// Beyond `connections`, a new one closes the oldest. The error names the address.
  static tl::expected<std::unique_ptr<HttpEndpoint>, std::string> start(
      ListenAddress address, Answer answer, unsigned connections,
      std::chrono::milliseconds longest_request = std::chrono::seconds(5));
  /// Closes every connection.
  virtual ~HttpEndpoint() = default;

  virtual const ListenAddress& address() const = 0;
};

}  // namespace lockbench::exporter
