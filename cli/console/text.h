#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockbench::cli {

/// What a message may show: one line that no terminal takes for commands, with the credentials of
/// any URL in it blotted out.
std::string presentable(std::string_view message);

/// Names that somebody who wrote `wrong` may have meant, the closest first, at most three.
std::vector<std::string_view> close_names(std::string_view wrong,
                                          const std::vector<std::string_view>& names);

/// ": did you mean a or b?", or nothing if no name is close.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace lockbench::cli
