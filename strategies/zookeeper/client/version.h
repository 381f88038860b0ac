#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strategies/duration.h"
#include "strategies/tls.h"
#include "strategies/url.h"

namespace lockbench::zookeeper {

/// The server's version, by its command "srvr", which servers answer unless that is switched off:
/// "3.8.0". `tls` may be null. Nothing without an answer within the timeout.
std::optional<std::string> version_of(const HostPort& server, const TlsSettings* tls,
                                      Duration timeout);

/// "3.8.0" of "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on ...".
std::optional<std::string> version_in(std::string_view answer);

}  // namespace lockbench::zookeeper
