#pragma once

#include <string>
#include <string_view>

#include "results/tables/text.h"

namespace lockbench::cli {

/// The message as one line that is safe to show: without control characters, and with *** instead
/// of the credentials of every URL and the password of every DSN.
std::string presentable(std::string_view message);

/// Whether a URL or "key=value" settings contain a password.
bool holds_password(std::string_view text);

using results::did_you_mean;

}  // namespace lockbench::cli
