#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// The member that a compact document has.
inline constexpr const char* kCompact = "compact";

/// The result file's document, fields in the file's order. No number in it is infinite or NaN.
nlohmann::ordered_json write_object(const Result& result);

/// Always valid JSON: bytes that are not UTF-8 are replaced.
std::string on_one_line(const nlohmann::ordered_json& value);

/// As from_json(), but the error may be long and hold anything.
tl::expected<Result, std::string> read_result(std::string_view text);

}  // namespace lockbench::results
