#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "history/operation.h"

namespace lockbench::history {

/// Reads a history of the form that its extension names. Operations of other functions than those
/// of locks, and of processes without a number (Jepsen's nemesis), are left out. The error names
/// the file, the line and what is allowed.
tl::expected<History, std::string> read(const std::string& path);

/// Puts up to `most` further bytes to `to` and returns their number; 0: the end.
using Refill = std::function<std::size_t(char* to, std::size_t most)>;
/// Reads `chunk` bytes at a time. `name` is that of the file.
tl::expected<History, std::string> read(const Refill& refill, Form form, std::string_view name,
                                        std::size_t chunk);

}  // namespace lockbench::history
