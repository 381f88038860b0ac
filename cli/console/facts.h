#pragma once

#include "results/file/model.h"
#include "strategies/duration.h"

namespace lockbench::cli {

results::Build build_facts();
/// "0.1.0 (05a4e27, Release)"
std::string build_line(const results::Build& build);

/// This machine, without servers.
results::Environment machine_facts();

/// The kernel's clock source, such as "tsc". Reading a slow one takes longer than some locks.
std::string clock_source();

/// "2026-11-21T01:25:30Z"
std::string rfc3339(WallTime time);

/// "20261121T012530Z-4f3a9c": sorts by time; `random` keeps runs of the same second apart.
std::string run_id(WallTime time, std::uint32_t random);

}  // namespace lockbench::cli
