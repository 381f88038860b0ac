#include <algorithm>

#include "cli/options/option.h"

namespace lockbench::cli {
namespace {

/// "[scheme://]user:password@..."
bool has_password_in_url(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    text.remove_prefix(scheme + 3);
  }
  const std::size_t at = text.rfind('@');
  return at != std::string_view::npos && text.substr(0, at).find(':') != std::string_view::npos;
}

// A password may contain '@' and '/', so everything up to the word's last '@' is replaced.
std::string without_credentials(std::string_view message) {
  std::string shown;
  // In a sentence, "a:b@c" without a scheme may be the name of a lock.
  const bool is_word = message.find_first_of(" \t\n\"") == std::string_view::npos;
  if (is_word && message.find("://") == std::string_view::npos && has_password_in_url(message)) {
    return shown.append("***").append(message.substr(message.rfind('@')));
  }
  while (true) {
    const std::size_t scheme = message.find("://");
    if (scheme == std::string_view::npos) return shown.append(message);
    const std::size_t start = scheme + 3;
    const std::size_t end = std::min(message.find_first_of(" \t\n\"", start), message.size());
    const std::size_t at = message.substr(0, end).rfind('@');
    shown.append(message.substr(0, start));
    // Not credentials: a message that shows the form of a URL.
    const std::string_view user = message.substr(start);
    const bool placeholder = user.starts_with("[user") || user.starts_with("[[user");
    if (at != std::string_view::npos && at >= start && !placeholder) {
      shown.append("***").append(message.substr(at, end - at));
    } else {
      shown.append(message.substr(start, end - start));
    }
    message.remove_prefix(end);
  }
}

/// Replaces the value of each "password=..." in connection settings.
std::string without_settings(std::string_view message) {
  constexpr std::string_view kSetting = "password=";
  std::string shown;
  while (true) {
    const std::size_t setting = message.find(kSetting);
    if (setting == std::string_view::npos) return shown.append(message);
    const std::size_t start = setting + kSetting.size();
    shown.append(message.substr(0, start));
    message.remove_prefix(start);
    // Not a password: a message that shows the form of a DSN.
    if (message.starts_with("...")) continue;
    const bool quoted = message.starts_with('\'');
    const std::size_t end = quoted ? message.find('\'', 1) : message.find_first_of(" \t\n\"&");
    if (end != 0) shown.append("***");
    message.remove_prefix(std::min(end, message.size()));
    if (quoted && !message.empty()) message.remove_prefix(1);
  }
}

/// Whether some "password" is followed by "=", also as part of "sslpassword" or "?password".
bool has_password_setting(std::string_view text) {
  constexpr std::string_view kName = "password";
  while (true) {
    const std::size_t name = text.find(kName);
    if (name == std::string_view::npos) return false;
    text.remove_prefix(name + kName.size());
    const std::size_t next = text.find_first_not_of(" \t\r\n");
    if (next != std::string_view::npos && text[next] == '=') return true;
  }
}

}  // namespace

std::string presentable(std::string_view message) {
  return results::printable(without_settings(without_credentials(message)));
}

bool holds_password(std::string_view text) {
  return has_password_in_url(text) || has_password_setting(text);
}

}  // namespace lockbench::cli
