#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::testbed {

/// Raises this process's soft limit of open files to `wanted`, or to the hard limit if that is
/// less; never lowers it. Servers started later inherit it. Returns the limit now in force; when it
/// is not enough, an error that names both figures and the remedy (the limit has been raised as far
/// as it goes all the same). Call it before threads that open files depend on it.
tl::expected<std::uint64_t, std::string> raise_open_file_limit(std::uint64_t wanted);

/// The hard limit: how far raise_open_file_limit can go.
std::uint64_t hard_open_file_limit();

/// How many clients a server of one process can have within the hard limit.
std::uint64_t clients_possible();

/// How many clients a server of one process may have within the limit of open files: `wanted`, or,
/// if that is 0, as many as the limit allows, at most 50,000. The error names the server and the
/// remedy.
tl::expected<std::uint64_t, std::string> clients_allowed(std::string_view server,
                                                         std::uint32_t wanted);

}  // namespace lockbench::testbed
