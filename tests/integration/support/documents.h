#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/integration/support/program.h"

namespace lockbench::test {

using Json = nlohmann::json;

/// Reads a result file. Throws std::runtime_error if it violates results/schema.json.
Json read_result(const std::filesystem::path& path);

/// The strategy's first run. Throws std::runtime_error if there is none.
const Json& run_of(const Json& result, std::string_view strategy);

/// Waits until the program, started with --events -, reports an event with these fields.
bool tells(Program& program, const Json& fields);

/// Whether the run was audited without violation. Accepts `untested`, as a short run may lack
/// contention.
bool kept_exclusion(const Json& run);

}  // namespace lockbench::test
