#include "strategies/postgres/client/names.h"

namespace lockbench::postgres {

std::int64_t advisory_number(std::string_view key) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : key) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return static_cast<std::int64_t>(hash);
}

std::string schema_of_run(std::string_view run_id) {
  constexpr std::size_t kLongestName = 63;
  std::string name = "lockbench_";
  for (const char c : run_id.substr(0, kLongestName - name.size())) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_';
  }
  return name;
}

std::string schema_of_key(std::string_view key) {
  constexpr std::string_view kPrefix = "lockbench:";
  if (!key.starts_with(kPrefix)) return schema_of_run("");
  key.remove_prefix(kPrefix.size());
  const std::size_t end = key.find(':');
  return schema_of_run(end == std::string_view::npos ? "" : key.substr(0, end));
}

}  // namespace lockbench::postgres
