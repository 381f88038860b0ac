#include "watch/sources/keys.h"

#include <algorithm>
#include <array>
#include <boost/regex.hpp>
#include <cctype>
#include <cstdint>

#include "results/tables/text.h"
#include "strategies/number.h"
#include "watch/families.h"

namespace lockbench::watch {
namespace {

/// Longer values are no tokens.
constexpr std::size_t kLongestOwner = 255;

std::optional<Duration> lasts_for(double count) {
  constexpr double kLongest = 10.0 * 365 * 24 * 3600;
  if (!(count > 0 && count <= kLongest)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
}

/// The fields of a message in Protocol Buffers' wire format.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;  ///< of a whole number
    std::string_view bytes;   ///< of a text or a message
  };
  /// Nothing at the end, or if the bytes are no message.
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    Field field{.number = *tag >> 3U, .value = 0, .bytes = {}};
    const std::uint64_t type = *tag & 7U;
    if (type == 0) {
      const auto value = varint();
      if (!value) return std::nullopt;
      field.value = *value;
      return field;
    }
    const auto size = type == 2 ? varint() : std::nullopt;
    if (!size || *size > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, *size);
    rest_.remove_prefix(*size);
    return field;
  }
  static std::string_view bytes_of(std::string_view message, std::uint64_t number) {
    Fields fields(message);
    while (const auto field = fields.next()) {
      if (field->number == number) return field->bytes;
    }
    return {};
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

/// Kubernetes' API server stores a Lease as a runtime.Unknown with its kind and its bytes.
std::optional<LockValue> read_kubernetes(std::string_view unknown) {
  constexpr std::uint64_t kTypeMeta = 1, kRaw = 2, kKind = 2, kSpec = 2, kHolder = 1, kLasts = 2;
  if (Fields::bytes_of(Fields::bytes_of(unknown, kTypeMeta), kKind) != "Lease") {
    return std::nullopt;
  }
  LockValue value{.owner = {}, .is_record = true, .lasts = {}};
  Fields fields(Fields::bytes_of(Fields::bytes_of(unknown, kRaw), kSpec));
  while (const auto field = fields.next()) {
    if (field->number == kHolder) value.owner = field->bytes.substr(0, kLongestOwner);
    if (field->number == kLasts) value.lasts = lasts_for(static_cast<double>(field->value));
  }
  return value;
}

std::optional<LockValue> read_json(std::string_view text) {
  static const boost::regex kHolder(
      "\"(?:holderIdentity|holder|owner|ownerId|owner_id|lockedBy|locked_by|leader)\"\\s*:\\s*"
      "\"((?:[^\"\\\\]|\\\\.){0,255})\"");
  static const boost::regex kLasts(
      "\"leaseDurationSeconds\"\\s*:\\s*([0-9]{1,9}(?:\\.[0-9]{1,9})?)");
  boost::match_results<std::string_view::const_iterator> found;
  if (!boost::regex_search(text.begin(), text.end(), found, kHolder)) return std::nullopt;
  LockValue value{.owner = found[1].str(), .is_record = true, .lasts = {}};
  if (boost::regex_search(text.begin(), text.end(), found, kLasts)) {
    value.lasts = lasts_for(parse_number<double>(found[1].str()).value_or(0));
  }
  return value;
}

bool is_printable(std::string_view value) {
  std::string text(value);
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\r'; }, ' ');
  return results::printable_page(text, false) == text;
}

/// ShedLock writes a new time when it shortens the lock, so only the host tells the owner.
std::string_view without_time(std::string_view token) {
  static const boost::regex kShedLock("ADDED:[-0-9T:.]+Z?@(.+)");
  boost::match_results<std::string_view::const_iterator> found;
  if (!boost::regex_match(token.begin(), token.end(), found, kShedLock)) return token;
  return token.substr(static_cast<std::size_t>(found.position(1)));
}

}  // namespace

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return glob_matches(pattern, name); });
}

bool is_wanted(const Request& request, std::string_view name) {
  return matches_any(request.locks, name) && !matches_any(request.exclude, name);
}

std::string prefix_of(std::string_view pattern) {
  return std::string(pattern.substr(0, pattern.find_first_of("*?")));
}

std::vector<std::string> merged_prefixes(const std::vector<std::string>& patterns) {
  std::vector<std::string> all;
  all.reserve(patterns.size());
  for (const std::string& pattern : patterns) all.push_back(prefix_of(pattern));
  std::ranges::sort(all);
  std::vector<std::string> merged;
  for (std::string& prefix : all) {
    if (merged.empty() || !prefix.starts_with(merged.back())) merged.push_back(std::move(prefix));
  }
  return merged;
}

std::set<std::string> buckets_in(const std::vector<std::string>& patterns) {
  constexpr std::string_view kAllowed =
      "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::set<std::string> buckets;
  for (const std::string& pattern : patterns) {
    const std::size_t end = std::min(pattern.find_first_not_of(kAllowed), pattern.size());
    if (end > 0 && pattern.substr(end, 1) == "/") buckets.insert(pattern.substr(0, end));
  }
  return buckets;
}

std::string redis_glob(std::string_view pattern) {
  std::string glob;
  for (const char c : pattern) {
    if (c == '[' || c == ']' || c == '\\' || c == '^') glob += '\\';
    glob += c;
  }
  return glob;
}

bool is_uuid(std::string_view text) {
  static const boost::regex kForm(kUuid);
  return boost::regex_match(text.begin(), text.end(), kForm);
}

bool is_random(std::string_view owner) {
  static const boost::regex kForm("(?=.*[0-9])[-[:alnum:]_+/=:.]{16,128}");
  return boost::regex_match(owner.begin(), owner.end(), kForm);
}

bool sounds_like_lock(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kWords{
      "lock", "mutex", "lease", "leader", "semaphore", "election", "singleton", "exclusive"};
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // "block" and "clock" contain "lock" but are no locks, so a word must start there or have a known
  // prefix.
  for (const std::string_view word : kWords) {
    for (std::size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      const bool inside = at > 0 && std::isalpha(static_cast<unsigned char>(lower[at - 1])) != 0;
      if (!inside || std::isupper(static_cast<unsigned char>(name[at])) != 0) return true;
      const std::string_view before = std::string_view(lower).substr(0, at);
      if (before.ends_with("red") || before.ends_with("dist") || before.ends_with("sem") ||
          before.ends_with("shed") || before.ends_with("un")) {
        return true;
      }
    }
  }
  return false;
}

std::string generalised(std::string_view name) {
  // A UUID, a number, or a long hexadecimal word with a digit.
  static const boost::regex kIds(
      "(?<![[:alnum:]])"
      "(?:[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}|[0-9]+(?![[:alnum:]])|"
      "(?=[a-fA-F]*[0-9])[[:xdigit:]]{8,}(?![[:alnum:]]))");
  constexpr std::size_t kLongest = 1024;
  const std::string shown(name.substr(0, kLongest));
  return boost::regex_replace(shown, kIds, "*") + (name.size() > kLongest ? "*" : "");
}

std::optional<LockValue> read_lock_value(std::string_view value) {
  constexpr std::string_view kKubernetes("k8s\0", 4);
  if (value.starts_with(kKubernetes)) return read_kubernetes(value.substr(kKubernetes.size()));
  const std::size_t first = value.find_first_not_of(" \t\r\n");
  const char begins = first == std::string_view::npos ? ' ' : value[first];
  if (begins == '{' && is_printable(value)) return read_json(value.substr(0, 4096));
  // A list, a page, or a text of several lines; a token may be any bytes.
  const bool is_text = is_printable(value) && (begins == '[' || begins == '<' ||
                                               value.find('\n') != std::string_view::npos);
  if (is_text || value.size() > kLongestOwner) return std::nullopt;
  return LockValue{.owner = std::string(without_time(value)), .is_record = false, .lasts = {}};
}

}  // namespace lockbench::watch
