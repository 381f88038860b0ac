#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::cli {

/// Whether a URL, or "key=value" settings, have a password in them.
bool holds_password(std::string_view text);

struct GivenFile {
  std::string text;
  /// Why its secrets are not safe: it is another user's, or open to others. Empty if they are safe:
  /// it is ours or root's alone, or a credential that systemd passed.
  std::string exposed;
};

/// Of at most 1 MiB. The error names the file and says why it cannot be read.
tl::expected<GivenFile, std::string> read_given_file(const std::string& path);

/// Its lines that are not blank, without blanks around them.
std::vector<std::string> lines_with_values(std::string_view text);

/// What the value "@FILE" stands for: such lines of a file, one at least, that others cannot read.
tl::expected<std::vector<std::string>, std::string> read_secrets(const std::string& path);

/// The environment's variable for an option: "LOCKBENCH_COUNTER_REDIS".
std::string environment_name(std::string_view option);

}  // namespace lockbench::cli
