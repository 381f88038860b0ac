#pragma once

namespace lockbench::hazards {

/// Main loop of a client process: carries out the requests that come by the socket (see
/// messages.h), until the other side is gone. Returns the exit code.
int serve_client(int socket);

}  // namespace lockbench::hazards
