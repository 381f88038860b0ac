#pragma once

#include "results/file/model.h"

namespace lockbench::results {

/// What tables and readers need of a result, in a tenth of its size: histograms, series and
/// timelines are left out, as are the times of commands; of repetitions after the first all but
/// what ranks and judges the lock, of a play's evidence all but its reason and what tables show,
/// and numbers keep four digits.
Result condense(Result result);

}  // namespace lockbench::results
