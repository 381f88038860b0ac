#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "exporter/addresses.h"

namespace lockbench::exporter {

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
