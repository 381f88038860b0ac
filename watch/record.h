#pragma once

#include <string_view>
#include <vector>

#include "results/file/model.h"
#include "watch/picture.h"

namespace lockbench::watch {

/// "at_least": as the result file names it.
std::string_view name_of(Accuracy accuracy);

/// The families of the picture, in its order.
std::vector<results::Observed> observed_of(const Picture& picture);
results::ObservedFinding finding_of(const Finding& finding);

/// Adds what was seen to a result, which has the environment and options already: `observed` and
/// `findings`. Owners are hashes.
void add_to(results::Result& result, const Picture& picture);

}  // namespace lockbench::watch
