#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "results/file/model.h"
#include "results/tables/runs.h"

namespace lockbench::results {

/// Markdown by the name that a page's markers use.
using NamedTables = std::map<std::string, std::string, std::less<>>;

/// The tables that the documentation shows of these results: each load under its name, with "-far"
/// if a network was added, "conclusions" of those without, "hazards", and each experiment under its
/// own name. If several results would give a table of the same name, the first one wins.
NamedTables reference_tables(const std::vector<Result>& results, const KnownFlaws& flaws);

/// `page` with the text between each `<!-- reference: NAME -->` and the next `<!-- end -->`
/// replaced by the table of that name. The error names the line and the problem: an unknown table
/// name or a missing end marker.
tl::expected<std::string, std::string> with_tables(std::string_view page,
                                                   const NamedTables& tables);

}  // namespace lockbench::results
