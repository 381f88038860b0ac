#pragma once

#include "strategies/url.h"

namespace lockbench::memcached {

/// One memcached server: HOST or HOST:PORT, with an IPv6 address in brackets.
using Endpoint = HostPort;

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

}  // namespace lockbench::memcached
