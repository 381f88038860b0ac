#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/integration/support/program.h"

namespace lockbench::test {

using Json = nlohmann::json;

/// A result file that keeps results/schema.json; else std::runtime_error.
Json read_result(const std::filesystem::path& path);

/// The strategy's first run; std::runtime_error if there is none.
const Json& run_of(const Json& result, std::string_view strategy);

/// Waits until the program, started with --events -, tells an event with these fields.
bool tells(Program& program, const Json& fields);

/// Whether the run was audited and nothing was violated. A short one may have had too little
/// contention for more.
bool kept_exclusion(const Json& run);

}  // namespace lockbench::test
