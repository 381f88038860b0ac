#pragma once

#include <string>

#include "results/file/model.h"

namespace lockbench::results {

/// What tables and readers need of a result, in a tenth of its size, as a document that from_json
/// reads. Histograms, series and timelines are left out, as are the times of commands; of
/// repetitions after the first all but what ranks and judges the lock, of a play's evidence all but
/// its reason and what tables show, and numbers keep four digits.
///
/// It stands on as few lines as are fit to be compared line by line: one for each member of the
/// document, and for each element of its lists. It says that it is `compact`: its runs lack what an
/// empty run would say.
std::string condensed(const Result& result);

}  // namespace lockbench::results
