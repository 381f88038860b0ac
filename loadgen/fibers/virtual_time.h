#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>

namespace lockbench::fibers {

/// Runs `body` on virtual time (see Time), with all fibers that it starts, on the calling thread.
/// Returns when all have ended; passes on what `body` throws. The error says why that is not
/// possible here.
tl::expected<void, std::string> on_virtual_time(const std::function<void()>& body);

}  // namespace lockbench::fibers
