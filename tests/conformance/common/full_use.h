#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/descriptor.h"
#include "tests/support/eventually.h"

namespace lockbench::test {

/// Does all that a run does with a lock and its store: asks the server what it is; one client takes
/// the lock and renews it while another waits for it in vain; clients contend for it; removes the
/// keys and the run. What went wrong first; empty if nothing did. `longest`: for a lock that
/// others have.
std::string use_fully(const Descriptor& descriptor, const std::vector<std::string>& urls,
                      Duration longest = kPatience);

/// That of each strategy of this store.
std::vector<std::string> use_all_fully(std::string_view backend, const std::string& url);

/// The lines of the block of docs/operations.md whose first line begins so, without comments;
/// `words` stand in it for others. Throws std::runtime_error if there is no such block.
std::vector<std::string> documented_rights(
    std::string_view first_line,
    const std::vector<std::pair<std::string_view, std::string>>& words);

}  // namespace lockbench::test
