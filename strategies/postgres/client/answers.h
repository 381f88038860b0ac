#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// What PostgreSQL writes as text.
namespace lockbench::postgres {

/// A number without sign: a fencing number, a process, or how many rows a command tag says.
std::optional<std::uint64_t> read_number(std::string_view text);

/// "t" or "f".
std::optional<bool> read_flag(std::string_view text);

}  // namespace lockbench::postgres
