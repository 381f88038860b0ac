#include "strategies/store.h"

#include <fmt/format.h>

#include <boost/regex.hpp>
#include <cctype>

namespace lockbench {

bool is_run_id(std::string_view text) {
  static const boost::regex form("[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}(-[0-9]{1,9})?");
  return boost::regex_match(text.begin(), text.end(), form);
}

bool is_of_run(std::string_view id, std::string_view run_id) {
  if (!id.starts_with(run_id)) return false;
  id.remove_prefix(run_id.size());
  if (id.empty()) return true;
  return id.size() > 1 && id[0] == '-' &&
         id.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

std::string_view run_of_key(std::string_view key) {
  constexpr std::string_view kPrefix = "lockbench:";
  if (!key.starts_with(kPrefix)) return {};
  key.remove_prefix(kPrefix.size());
  const std::size_t end = key.find(':');
  return end == std::string_view::npos ? std::string_view() : key.substr(0, end);
}

std::string schema_of_run(std::string_view run_id) {
  constexpr std::size_t kLongestName = 63;
  std::string name = "lockbench_";
  for (const char c : run_id.substr(0, kLongestName - name.size())) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return name;
}

const StoreKind* find_store_kind(std::string_view backend) {
  const StoreKind* const kind = StoreRegistration::find(backend);
  return kind != nullptr && kind->not_built.empty() ? kind : nullptr;
}

bool is_local(std::string_view host) {
  // "127.example.org" is not a loopback address.
  const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host.empty() || host == "localhost" || host == "::1" || host.starts_with('/') ||
         host.starts_with('@') || (numeric && host.starts_with("127."));
}

Secrecy secrecy_by_scheme(const Url& url, std::string_view secure) {
  if (url.tls) return {.encryption = "TLS"};
  const bool local =
      std::ranges::all_of(url.hosts, [](const HostPort& one) { return is_local(one.host); });
  if (url.password.empty() || local) return {};
  return {.advice = fmt::format("use {}", secure)};
}

std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout) {
  std::vector<std::unique_ptr<Store>> stores;
  const StoreKind* const kind = find_store_kind(strategy.backend);
  if (kind == nullptr) return stores;
  for (const std::string& url : urls_of(strategy, endpoints)) {
    stores.push_back(kind->make(url, command_timeout));
    if (strategy.traits.nodes <= 1) break;
  }
  return stores;
}

}  // namespace lockbench
