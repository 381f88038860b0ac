#pragma once

#include <string>
#include <string_view>

#include "results/tables/text.h"

namespace lockbench::cli {

/// A text that is safe to show: one line, without control characters, and with *** in place of the
/// credentials of every URL and of the password in every DSN.
std::string presentable(std::string_view message);

/// Whether a URL, or "key=value" settings, have a password in them.
bool holds_password(std::string_view text);

using results::did_you_mean;

}  // namespace lockbench::cli
