#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::memcached {

/// One memcached server: HOST or HOST:PORT, with an IPv6 address in brackets.
struct Endpoint {
  std::string host;
  std::uint16_t port = 11211;

  /// "127.0.0.1:11211"
  std::string display() const;
};

/// The error names what is wrong and what is allowed, and does not repeat the text.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

}  // namespace lockbench::memcached
