#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockbench::test {

/// What in the document breaks results/schema.json; empty if nothing does.
std::string violation_of_schema(const nlohmann::json& document);

}  // namespace lockbench::test
