#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::testbed {

/// How many clients a server of one process may have within the limit of open files: `wanted`, or,
/// if that is 0, as many as the limit allows, at most 50,000. The error names the server and the
/// remedy.
tl::expected<std::uint64_t, std::string> clients_allowed(std::string_view server,
                                                         std::uint32_t wanted);

/// The user that runs a server which refuses to run as root: `user` if we are root, else empty.
std::string unless_root(std::string_view user);

}  // namespace lockbench::testbed
