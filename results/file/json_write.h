#pragma once

#include <nlohmann/json_fwd.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// The result file's document, fields in the file's order. No number in it is infinite or NaN.
nlohmann::ordered_json write_object(const Result& result);

}  // namespace lockbench::results
