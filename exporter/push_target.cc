#include "exporter/push_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace lockbench::exporter {
namespace {

constexpr const char* kForm =
    "a Pushgateway's address has the form http://[user[:password]@]host[:port][/path]";

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    std::uint8_t value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || rest != digits.data() + 2) {
      return std::nullopt;
    }
    decoded.push_back(static_cast<char>(value));
    i += 2;
  }
  return decoded;
}

bool is_plain(std::string_view text, std::string_view besides) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alphanumeric || besides.find(c) != std::string_view::npos;
  });
}

bool take_user(std::string_view text, PushTarget& target) {
  const std::size_t colon = text.find(':');
  const auto user = percent_decoded(text.substr(0, colon));
  const auto password =
      percent_decoded(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (!user || !password) return false;
  target.user = *user;
  target.password = *password;
  return true;
}

bool take_host(std::string_view text, PushTarget& target) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  target.host = text.substr(0, colon);
  target.port = target.scheme == "https" ? "443" : "80";
  if (colon != std::string_view::npos) target.port = text.substr(colon + 1);
  std::uint16_t port = 0;
  const char* const end = target.port.data() + target.port.size();
  const auto [rest, error] = std::from_chars(target.port.data(), end, port);
  const bool v6 = target.host.starts_with('[') && target.host.ends_with(']');
  return !target.host.empty() && is_plain(target.host, v6 ? "[]:." : "-._") &&
         error == std::errc() && rest == end && port != 0;
}

}  // namespace

std::string PushTarget::display() const {
  return fmt::format("{}://{}:{}{}", scheme, host, port, path);
}

tl::expected<PushTarget, std::string> parse_push_target(std::string_view url) {
  PushTarget target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    target.scheme = scheme.substr(0, scheme.size() - 3);
    std::string_view rest = url.substr(scheme.size());
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    target.path = rest.substr(slash);
    while (target.path.ends_with('/')) target.path.pop_back();
    rest = rest.substr(0, slash);
    const std::size_t at = rest.rfind('@');
    if (at != std::string_view::npos) {
      if (!take_user(rest.substr(0, at), target)) return tl::unexpected<std::string>(kForm);
      rest = rest.substr(at + 1);
    }
    if (!take_host(rest, target) || !is_plain(target.path, "/-._~")) break;
    return target;
  }
  return tl::unexpected<std::string>(kForm);
}

}  // namespace lockbench::exporter
