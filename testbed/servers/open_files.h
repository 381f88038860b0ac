#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace lockbench::testbed {

/// Raises this process's soft limit of open files to `wanted`, or to the hard limit if that is
/// less; never lowers it. Servers started later inherit it. Returns the limit now in force; when it
/// is not enough, an error that names both figures and the remedy (the limit has been raised as far
/// as it goes all the same). Call it before threads that open files depend on it.
tl::expected<std::uint64_t, std::string> raise_open_file_limit(std::uint64_t wanted);

/// The hard limit: how far raise_open_file_limit can go.
std::uint64_t hard_open_file_limit();

}  // namespace lockbench::testbed
