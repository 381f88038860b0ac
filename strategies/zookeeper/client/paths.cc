#include "strategies/zookeeper/client/paths.h"

#include <fmt/format.h>

#include "strategies/number.h"

namespace lockbench::zookeeper {
namespace {

constexpr std::string_view kRoot = "/lockbench";
constexpr std::string_view kPrefix = "lockbench:";

/// As a valid name of one node.
std::string encoded(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = c > ' ' && c < 0x7f && c != '/' && c != '%';
    if (plain) {
      name += c;
    } else {
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  // ZooKeeper does not allow these names.
  if (name == "." || name == "..") return "%" + name;
  return name.empty() ? "%" : name;
}

}  // namespace

std::string run_path(std::string_view run_id) {
  return fmt::format("{}/{}", kRoot, encoded(run_id));
}

std::string node_of_key(std::string_view key) {
  std::string_view run = "-";
  std::string_view name = key;
  if (const std::size_t colon = key.find(':', kPrefix.size());
      key.starts_with(kPrefix) && colon != std::string_view::npos) {
    run = key.substr(kPrefix.size(), colon - kPrefix.size());
    name = key.substr(colon + 1);
  }
  return fmt::format("{}/{}", run_path(run), encoded(name));
}

std::string_view parent_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

std::optional<std::int64_t> sequence_of(std::string_view name) {
  constexpr std::size_t kDigits = 10;
  if (name.size() < kDigits) return std::nullopt;
  const auto number = parse_number<std::uint64_t>(name.substr(name.size() - kDigits));
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

Place place_among(std::span<const std::string> children, std::string_view own) {
  Place place;
  const auto mine = sequence_of(own);
  if (!mine) return place;
  std::int64_t nearest = -1;
  for (const std::string& child : children) {
    if (child == own) place.there = true;
    const auto sequence = sequence_of(child);
    if (!sequence || *sequence >= *mine || *sequence <= nearest) continue;
    nearest = *sequence;
    place.ahead = child;
  }
  return place;
}

}  // namespace lockbench::zookeeper
