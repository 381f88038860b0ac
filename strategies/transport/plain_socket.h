#pragma once

#include <memory>
#include <tl/expected.hpp>

#include "strategies/transport/socket.h"
#include "strategies/transport/socket_race.h"

namespace lockbench {

/// Takes over a connected socket, for any carrier: the present one keeps it until its end. `tcp`:
/// not a unix socket. `timeouts.answer`: its own, where it blocks.
tl::expected<std::unique_ptr<Transport>, std::string> make_plain_socket(OwnedSocket socket,
                                                                        bool tcp,
                                                                        const Timeouts& timeouts);

}  // namespace lockbench
