#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/run/demand.h"

namespace lockbench::loadgen {

/// The transactions of the workload's trace in their order, each for the client that asks next,
/// with its hold and think times. The error says why the file cannot be read. Throws
/// std::runtime_error in next() if the file was changed meanwhile and cannot be read to its end.
tl::expected<std::unique_ptr<Demand>, std::string> make_trace_demand(const Workload& workload,
                                                                     const Share& share = {});

}  // namespace lockbench::loadgen
