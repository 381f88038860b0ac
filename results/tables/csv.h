#pragma once

#include <string>
#include <string_view>

#include "results/file/model.h"

namespace lockbench::results {

/// RFC 4180: a header, then one row a run. Plain numbers in base units, named in the header; empty
/// where there was nothing to measure.
std::string to_csv(const Result& result);

/// A text as one field: quoted where it needs to be.
std::string csv_field(std::string_view text);

}  // namespace lockbench::results
