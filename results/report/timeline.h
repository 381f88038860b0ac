#pragma once

#include "results/file/model.h"

namespace lockbench::results::report {

/// One play as a picture (SVG): a row for each event, a column for each client, and a bar while a
/// client treats the lock as its own. Rows in which several clients do are red. At most 100 events.
std::string timeline_svg(const Hazard& hazard);

}  // namespace lockbench::results::report
