#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::testbed {

/// The user who may do everything: authentication cannot be enabled without one of this name.
inline constexpr std::string_view kEtcdRoot = "root";

/// Makes the root user of the etcd that listens on this unix socket, and requires everybody to
/// authenticate from now on. Takes at most some seconds.
tl::expected<void, std::string> enable_etcd_auth(const std::filesystem::path& socket,
                                                 const std::string& secret);

}  // namespace lockbench::testbed
