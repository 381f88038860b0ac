#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/url.h"

namespace lockbench::mysql {

/// One MariaDB server.
using Endpoint = Url;

/// mysql://[user[:password]@]host[:port], or mysqls:// for TLS. Errors are those of parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

/// The name of a key's lock for GET_LOCK, which has room for 64 characters: its SHA-256 in
/// hexadecimal digits.
std::string lock_name(std::string_view key);

}  // namespace lockbench::mysql
