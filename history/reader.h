#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "history/operation.h"

namespace lockbench::history {

/// Reads a history of the form that its extension names. Operations of other functions than those
/// of locks, and of processes without a number (Jepsen's nemesis), are left out. The error names
/// the file, the line and what is allowed.
tl::expected<History, std::string> read(const std::string& path);
/// `name` is that of the file.
tl::expected<History, std::string> read(std::istream& from, Form form, std::string_view name);

}  // namespace lockbench::history
