#pragma once

#include <string>
#include <vector>

#include "tests/support/servers.h"

namespace lockbench::test {

/// The command's words that are keys; empty for commands that have none. Throws std::runtime_error
/// for a command that lockbench has no reason to send.
std::vector<std::string> keys_of(const SeenCommand& command);

}  // namespace lockbench::test
