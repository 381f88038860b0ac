#pragma once

namespace lockbench::fibers {

/// Sets up the calling thread, on which clients run.
void tune_client_thread();

}  // namespace lockbench::fibers
