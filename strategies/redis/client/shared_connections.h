#pragma once

#include <memory>

#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/shared_link.h"

namespace lockbench::redis {

/// How a run's clients share connections.
struct Sharing {
  int connections = 1;  ///< to each server, split over the threads; each thread has at least one
  int threads = 1;      ///< that carry clients
};

/// Clients on fibers get connections that they share with others of their thread: those of one
/// server take turns in the order in which they are made. Callers on a thread of their own,
/// services, subscribers, and commands that wait at the server get connections of their own, from
/// `own`. `dial` makes the shared ones. To be destroyed after all connections, and before the
/// fibers' scheduler.
std::unique_ptr<ConnectionFactory> make_sharing_factory(Sharing sharing,
                                                        std::unique_ptr<ConnectionFactory> own,
                                                        Dial dial);
/// Over TCP, TLS or a unix socket.
std::unique_ptr<ConnectionFactory> make_sharing_factory(Sharing sharing);

}  // namespace lockbench::redis
