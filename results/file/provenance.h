#pragma once

#include <string>

#include "results/file/model.h"

namespace lockbench::results {

/// "8 clients, 1 key, no work inside": the load that a result's runs were measured under.
std::string load_of(const Result& result);

/// "2 × CPU NAME, redis 7.0.15, lockbench 0.1.0 (05a4e27, Release), 2026-11-21": where a result's
/// figures come from.
std::string origin_of(const Result& result);

}  // namespace lockbench::results
