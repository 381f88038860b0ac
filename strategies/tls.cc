#include "strategies/tls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>

#include "strategies/url.h"

namespace lockbench {
namespace {

constexpr std::string_view kAllowed =
    "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.2|1.3";

tl::unexpected<std::string> refuse(std::string_view why) {
  return tl::unexpected(fmt::format("TLS: {}; allowed: {}", why, kAllowed));
}

using Done = tl::expected<void, std::string>;

Done set(TlsSettings& settings, std::string_view name, std::string value) {
  std::string* const file = name == "cacert" ? &settings.ca_file
                            : name == "cert" ? &settings.certificate_file
                            : name == "key"  ? &settings.key_file
                                             : nullptr;
  if (file != nullptr) {
    if (::access(value.c_str(), R_OK) != 0) {
      return refuse(fmt::format("{}: {} cannot be read: {}", name, value,
                                std::system_category().message(errno)));
    }
    *file = std::move(value);
  } else if (name == "server-name") {
    settings.server_name = std::move(value);
  } else if (name == "min-tls") {
    if (value != "1.2" && value != "1.3") return refuse("min-tls must be 1.2 or 1.3");
    settings.only_1_3 = value == "1.3";
  } else {
    return refuse(fmt::format("{} is not known", name));
  }
  return {};
}

/// What stands before a = may be shown if it looks like a name; all else may be a secret.
bool is_name(std::string_view text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_0123456789") == std::string_view::npos;
}

/// Also no control characters, which must not reach a terminal.
bool is_value(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
  }
  return !text.empty();
}

}  // namespace

tl::expected<TlsSettings, std::string> parse_tls_query(std::string_view query) {
  TlsSettings settings;
  std::set<std::string_view> seen;
  if (query.starts_with('?')) query.remove_prefix(1);
  while (!query.empty()) {
    std::string_view name = query;
    query = cut_at(name, '&');
    const bool has_value = name.find('=') != std::string_view::npos;
    const auto value = percent_decode(cut_at(name, '='));
    if (!has_value || name.empty() || !is_name(name)) return refuse("not NAME=VALUE");
    if (!value || !is_value(*value)) return refuse(fmt::format("{} needs a value", name));
    if (!seen.insert(name).second) return refuse(fmt::format("{} is given twice", name));
    if (auto done = set(settings, name, *value); !done) return tl::unexpected(done.error());
  }
  if (settings.certificate_file.empty() != settings.key_file.empty()) {
    return refuse(settings.key_file.empty() ? "cert needs key beside it"
                                            : "key needs cert beside it");
  }
  return settings;
}

}  // namespace lockbench
