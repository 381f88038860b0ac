#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "exporter/push_target.h"
#include "strategies/duration.h"

namespace lockbench::exporter {

/// Pushes the current metrics as job "lockbench" of this host's instance, replacing earlier pushes.
/// Blocks for at most `within`, then gives up. The error names the gateway, without secrets.
tl::expected<void, std::string> push(const PushTarget& target,
                                     const std::shared_ptr<prometheus::Collectable>& metrics,
                                     Duration within = std::chrono::seconds(10));

}  // namespace lockbench::exporter
