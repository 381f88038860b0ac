#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench::redis {

/// The commands, in small letters, that the strategy sends by itself, including its scripts'.
std::vector<std::string> commands_of(const Descriptor& strategy);

/// The Redis command that makes a user for these strategies, with the least rights: the commands
/// that they declare, those that their scripts call, and those that connections and stores send; on
/// keys and channels of lockbench alone. PASSWORD stands for the password.
std::string acl_command(std::span<const Descriptor* const> strategies);

}  // namespace lockbench::redis
