#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockbench::cli {

/// A text that is safe to show: one line, without control characters, and with *** in place of the
/// credentials of every URL and of the password in every DSN.
std::string presentable(std::string_view message);

/// Whether a URL, or "key=value" settings, have a password in them.
bool holds_password(std::string_view text);

/// ": did you mean a, b?" of the names that `wrong` may be a misspelling of: at most three, the
/// closest first; empty if no name is close.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace lockbench::cli
