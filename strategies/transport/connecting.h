#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "strategies/transport/lookup.h"
#include "strategies/transport/socket.h"

namespace lockbench {

/// As begin_connecting() in socket.h, with a resolver of the caller's.
tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, Duration timeout, const TlsSettings* tls,
    const Resolver& resolver);

}  // namespace lockbench
