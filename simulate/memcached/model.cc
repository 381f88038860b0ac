#include "simulate/memcached/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/memcached/client/connection.h"
#include "strategies/number.h"

namespace lockbench::simulate {
namespace {

constexpr std::size_t kLongestItemName = 250;
constexpr const char* kError = "ERROR\r\n";
constexpr const char* kBadFormat = "CLIENT_ERROR bad command line format\r\n";

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// When an item expires, by the server's count.
std::int64_t expiry(std::int32_t asked, std::int64_t now) {
  if (asked == 0) return 0;
  // Times of day are not modelled: the longest that clients ask for is a length.
  const bool over = asked < 0 || asked > memcached::kLongestExpiry;
  return over ? 1 : now + asked;
}

}  // namespace

std::optional<std::string> MemcachedModel::execute(std::string& input, std::int64_t now) {
  const std::size_t end = input.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string_view line = std::string_view(input).substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto words = split(line);
  const std::string_view name = words.empty() ? "" : words[0];
  std::size_t used = end + 1;
  std::optional<std::string> answer = kError;
  if (name == "add" || name == "set" || name == "cas") {
    answer = store(words, std::string_view(input).substr(used), used, now);
  } else if (name == "get" || name == "gets") {
    answer = get(words, now);
  } else if (name == "delete") {
    answer = remove(words, now);
  } else if (name == "touch") {
    answer = touch(words, now);
  } else if (name == "version") {
    answer = "VERSION 1.6.18\r\n";
  }
  if (answer) input.erase(0, used);
  return answer;
}

MemcachedModel::Item* MemcachedModel::find(std::string_view key, std::int64_t now) {
  const auto found = items_.find(key);
  if (found == items_.end()) return nullptr;
  if (found->second.lives(now)) return &found->second;
  items_.erase(found);
  return nullptr;
}

std::optional<std::string> MemcachedModel::store(Words words, std::string_view input,
                                                 std::size_t& used, std::int64_t now) {
  const bool compares = words[0] == "cas";
  if (words.size() != (compares ? 6U : 5U)) return kError;
  const auto flags = parse_number<std::uint32_t>(words[2]);
  const auto seconds = parse_number<std::int32_t>(words[3]);
  const auto size = parse_number<std::int32_t>(words[4]);
  const auto version = compares ? parse_number<std::uint64_t>(words[5]) : 0;
  const bool fits = flags && seconds && size && version && *size >= 0;
  if (!fits || words[1].size() > kLongestItemName) return kBadFormat;
  const auto bytes = static_cast<std::size_t>(*size);
  if (input.size() < bytes + 2) return std::nullopt;
  used += bytes + 2;
  if (input.substr(bytes, 2) != "\r\n") return "CLIENT_ERROR bad data chunk\r\n";
  const Item* const old = find(words[1], now);
  if (words[0] == "add" && old != nullptr) return "NOT_STORED\r\n";
  if (compares && old == nullptr) return "NOT_FOUND\r\n";
  if (compares && old->version != *version) return "EXISTS\r\n";
  items_.insert_or_assign(std::string(words[1]), Item{.value = std::string(input.substr(0, bytes)),
                                                      .flags = *flags,
                                                      .expires = expiry(*seconds, now),
                                                      .version = ++versions_});
  return "STORED\r\n";
}

std::string MemcachedModel::get(Words words, std::int64_t now) {
  if (words.size() < 2) return kError;
  std::string answer;
  for (const std::string_view key : words.subspan(1)) {
    if (key.size() > kLongestItemName) return kBadFormat;
    const Item* const item = find(key, now);
    if (item == nullptr) continue;
    answer += fmt::format("VALUE {} {} {}", key, item->flags, item->value.size());
    if (words[0] == "gets") answer += fmt::format(" {}", item->version);
    answer.append("\r\n").append(item->value).append("\r\n");
  }
  return answer + "END\r\n";
}

std::string MemcachedModel::remove(Words words, std::int64_t now) {
  if (words.size() < 2 || words.size() > 4) return kError;
  if (words.size() > 3 || (words.size() == 3 && words[2] != "0")) {
    return "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
  }
  if (words[1].size() > kLongestItemName) return kBadFormat;
  if (find(words[1], now) == nullptr) return "NOT_FOUND\r\n";
  items_.erase(items_.find(words[1]));
  return "DELETED\r\n";
}

std::string MemcachedModel::touch(Words words, std::int64_t now) {
  if (words.size() != 3) return kError;
  if (words[1].size() > kLongestItemName) return kBadFormat;
  const auto seconds = parse_number<std::int32_t>(words[2]);
  if (!seconds) return "CLIENT_ERROR invalid exptime argument\r\n";
  Item* const item = find(words[1], now);
  if (item == nullptr) return "NOT_FOUND\r\n";
  item->expires = expiry(*seconds, now);
  return "TOUCHED\r\n";
}

bool MemcachedModel::evict(const std::function<std::uint64_t()>& random) {
  if (items_.empty()) return false;
  items_.erase(std::next(items_.begin(), static_cast<std::ptrdiff_t>(random() % items_.size())));
  return true;
}

std::vector<std::string> MemcachedModel::names(std::int64_t now) const {
  std::vector<std::string> names;
  for (const auto& [key, item] : items_) {
    if (item.lives(now)) names.push_back(key);
  }
  return names;
}

}  // namespace lockbench::simulate
