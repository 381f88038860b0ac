#pragma once

#include <array>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Values as text, by the name of their option.
using GivenValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// The commands that can have a table of their own in the file, so that one file serves them all.
inline constexpr std::array<std::string_view, 3> kCommandTables{"run", "capacity", "choose"};

/// Reads a TOML file whose keys are the names of `options`; those in the command's table, if it can
/// have one, win over those outside of tables, and the other tables are skipped. The values are
/// checked where they are applied. A UsageError names the file, the key and what is allowed.
GivenValues read_config_file(const std::string& path, const std::vector<Option>& options,
                             std::string_view command);

/// What the value "@FILE" stands for: the lines of a file that others cannot read, one at least.
tl::expected<std::vector<std::string>, std::string> read_secrets(const std::string& path);

/// The lines that are not blank, without blanks around them.
std::vector<std::string> lines_with_values(const std::string& text);

}  // namespace lockbench::cli
