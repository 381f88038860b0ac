#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// The result file's document, fields in the file's order. No number in it is infinite or NaN.
nlohmann::ordered_json write_object(const Result& result);

/// The result in a document whose schema has been looked at. The error names the first field that
/// is missing or of a wrong type by its path.
tl::expected<Result, std::string> read_result(const nlohmann::json& document);

}  // namespace lockbench::results
