#pragma once

#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Reads a subcommand's arguments, and the TOML file that they may name: what the command line says
/// wins. Nothing is started, nothing but the TOML file is touched.
tl::expected<RunOptions, UsageError> parse(const Command& command,
                                           std::span<const std::string> args);

/// What `lockbench <command> --help` prints.
std::string help(const Command& command);

}  // namespace lockbench::cli
