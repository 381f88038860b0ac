#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockbench::test {

/// The document's violation of results/schema.json; empty if it is valid.
std::string violation_of_schema(const nlohmann::json& document);

}  // namespace lockbench::test
