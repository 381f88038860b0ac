#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockbench::cli {

/// The words between commas.
std::vector<std::string> split_at_commas(std::string_view text);

/// A text that is safe to show: one line, without control characters, and with *** in place of the
/// credentials of every URL and of the password in every DSN.
std::string presentable(std::string_view message);

/// The names that `wrong` may be a misspelling of: at most three, the closest first.
std::vector<std::string_view> close_names(std::string_view wrong,
                                          const std::vector<std::string_view>& names);

/// ": did you mean a or b?", or nothing if no name is close.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace lockbench::cli
