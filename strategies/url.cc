#include "strategies/url.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "strategies/number.h"

namespace lockbench {
namespace {

constexpr std::string_view kTlsQuery =
    "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.2|1.3";

tl::unexpected<std::string> refuse(std::string_view why) {
  return tl::unexpected(fmt::format("TLS: {}; allowed: {}", why, kTlsQuery));
}

tl::expected<void, std::string> set(TlsSettings& settings, std::string_view name,
                                    std::string value) {
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

/// The text before a = may be shown if it looks like a name; all else may be a secret.
bool is_name(std::string_view text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_0123456789") == std::string_view::npos;
}

/// Control characters must not reach a terminal.
bool is_value(std::string_view text) {
  return !text.empty() &&
         std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

bool read_login(std::string_view text, const UrlForm& form, Url& url) {
  if (text.find_first_of(form.must_encode) != std::string_view::npos) return false;
  const bool has_password = text.find(':') != std::string_view::npos;
  const std::string_view encoded_password = cut_at(text, ':');
  const auto user = percent_decode(text);
  const auto password = percent_decode(encoded_password);
  if (!user || !password) return false;
  url.user = *user;
  url.password = *password;
  if (form.login == UrlForm::Login::password) return has_password && !password->empty();
  return form.login == UrlForm::Login::user || (!user->empty() && !password->empty());
}

std::string_view login_form(UrlForm::Login login) {
  if (login == UrlForm::Login::password) return "user:password or :password";
  return login == UrlForm::Login::user ? "user or user:password" : "user:password";
}

/// The error says what is wrong.
tl::expected<HostPort, std::string_view> parse_host(std::string_view text, std::uint16_t port) {
  const auto wrong = [](std::string_view why) { return tl::unexpected(why); };
  HostPort address{.host = {}, .port = port};
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return wrong("a [ without its ]");
    address.host = text.substr(1, bracket - 1);
    text.remove_prefix(bracket + 1);
    if (!text.empty() && text[0] != ':') return wrong("unexpected text after the host");
  } else {
    address.host = text.substr(0, text.find(':'));
    text.remove_prefix(address.host.size());
    if (address.host.find_first_of("@=%?#") != std::string::npos) return wrong("not a host name");
  }
  if (address.host.empty()) return wrong("the host is missing");
  if (std::ranges::any_of(address.host, [](unsigned char c) { return c <= ' '; })) {
    return wrong("a space in the host name");
  }
  if (text.empty()) return address;
  const auto given = parse_number<std::uint16_t>(text.substr(1));
  if (!given || *given == 0) return wrong("the port must be a number from 1 to 65535");
  address.port = *given;
  return address;
}

/// Where the path begins, or the query. A question mark before the @ is part of a password.
std::size_t end_of_servers(std::string_view text, const UrlForm& form) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  if (!form.query && !form.tls) return slash;
  const std::size_t at = text.substr(0, slash).rfind('@');
  return std::min(text.find('?', at == std::string_view::npos ? 0 : at), slash);
}

}  // namespace

std::string Url::display() const {
  std::string all;
  for (const HostPort& host : hosts) all += (all.empty() ? "" : ",") + host.display();
  return all + path;
}

std::string HostPort::display() const { return display_address(host, std::to_string(port)); }

std::string display_address(std::string_view host, std::string_view port) {
  const bool ipv6 = host.find(':') != std::string_view::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned code = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, code, 16);
    if (digits.size() != 2 || error != std::errc() || rest != end) return std::nullopt;
    decoded += static_cast<char>(code);
    i += 2;
  }
  return decoded;
}

std::string_view cut_at(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

tl::unexpected<std::string> invalid_url(std::string_view why, const UrlForm& form) {
  return tl::unexpected(fmt::format("{}; allowed: {}", why, form.allowed));
}

tl::expected<Url, std::string> parse_url(std::string_view text, const UrlForm& form) {
  Url url;
  if (const std::size_t end = text.find("://"); end != std::string_view::npos) {
    url.scheme = text.substr(0, end);
    text.remove_prefix(end + 3);
  }
  if (std::ranges::find(form.schemes, url.scheme) == form.schemes.end()) {
    return invalid_url(fmt::format("not {}", form.what), form);
  }
  const std::size_t end = end_of_servers(text, form);
  std::string_view servers = text.substr(0, end);
  text.remove_prefix(end);
  if (form.query || form.tls) url.query = cut_at(text, '?');
  url.path = text;
  if (form.login != UrlForm::Login::none) {
    const std::size_t at = servers.rfind('@');
    // An @ after the slash: the slash is part of an unencoded password.
    const bool torn = at == std::string_view::npos && form.max_hosts > 0 &&
                      (url.path + url.query).find('@') != std::string::npos;
    if (torn || (at != std::string_view::npos && !read_login(servers.substr(0, at), form, url))) {
      return invalid_url(
          fmt::format("credentials must be {}, percent-encoded", login_form(form.login)), form);
    }
    if (at != std::string_view::npos) servers.remove_prefix(at + 1);
  }
  if (form.max_hosts == 0) {
    url.path.insert(0, servers);
    return url;
  }
  for (bool more = true; more;) {
    more = servers.find(',') != std::string_view::npos;
    const std::string_view rest = cut_at(servers, ',');
    auto host = parse_host(servers, form.default_port);
    if (!host) return invalid_url(host.error(), form);
    if (url.hosts.size() == form.max_hosts) {
      return invalid_url(
          fmt::format("at most {} host{}", form.max_hosts, form.max_hosts == 1 ? "" : "s"), form);
    }
    url.hosts.push_back(*std::move(host));
    servers = rest;
  }
  if (form.tls) {
    auto settings = parse_tls_query(url.query);
    if (!settings) return tl::unexpected(std::move(settings.error()));
    url.tls = std::make_shared<const TlsSettings>(*std::move(settings));
  }
  return url;
}

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
    return refuse(settings.key_file.empty() ? "cert needs key too" : "key needs cert too");
  }
  return settings;
}

}  // namespace lockbench
