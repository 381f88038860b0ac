#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "results/file/model.h"
#include "results/tables/columns.h"

namespace lockbench::results {

/// Markdown under the name that a page calls it by.
using NamedTables = std::map<std::string, std::string, std::less<>>;

/// What a page shows of these results: "comparison" of runs, or "alone" where no clients contended,
/// "hazards", and experiments under their own names. Of several results of one kind the first
/// counts.
NamedTables readme_tables(const std::vector<Result>& results, const KnownFlaws& flaws);

/// The page with what stands between `<!-- reference: NAME -->` and the next `<!-- end -->`
/// replaced by the table of that name. The error names the line and what is wrong with it: a name
/// that there is no table of, an end that is missing.
tl::expected<std::string, std::string> with_tables(std::string_view page,
                                                   const NamedTables& tables);

}  // namespace lockbench::results
