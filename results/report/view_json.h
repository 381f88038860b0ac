#pragma once

#include <string>

#include "results/report/view.h"

namespace lockbench::results::report {

/// The view as JSON that can stand inside an HTML element: no "<", ">" or "&", ASCII only. Texts
/// are cut at their bounds and hold no control characters; what is not a number is null.
std::string to_view_json(const View& view);

}  // namespace lockbench::results::report
