#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/descriptor.h"
#include "tests/support/eventually.h"

namespace lockbench::test {

/// Uses a lock and its store like a run: queries the server's facts; one client takes and renews
/// the lock while another waits in vain; clients contend; removes the keys and the run. Returns the
/// first problem; empty if there is none. `longest`: for waits for a lock held by others.
std::string use_fully(const Descriptor& descriptor, const std::vector<std::string>& urls,
                      Duration longest = kPatience);

/// The results of use_fully() for each strategy of this store.
std::vector<std::string> use_all_fully(std::string_view backend, const std::string& url);

/// The lines of the block in docs/operations.md whose first line begins like this, without comments
/// and with `words` replaced. Throws std::runtime_error if there is no such block.
std::vector<std::string> documented_rights(
    std::string_view first_line,
    const std::vector<std::pair<std::string_view, std::string>>& words);

}  // namespace lockbench::test
