#include "strategies/waiting/wait_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace lockbench {

Duration WaitPolicy::delay(std::uint32_t earlier_waits, Env& env) const {
  if (kind != WaitKind::backoff) return min;
  // 2^40 times even a nanosecond is past any bound; a larger shift would overflow.
  const double doubled =
      static_cast<double>(min.count()) * static_cast<double>(1ULL << std::min(earlier_waits, 40U));
  const double bound = std::min(doubled, static_cast<double>(max.count()));
  const double share = static_cast<double>(env.random() >> 11) * 0x1p-53;  // [0, 1)
  return Duration(static_cast<std::int64_t>(bound * share));
}

std::string_view to_string(WaitKind kind) {
  switch (kind) {
    case WaitKind::poll:
      return "poll";
    case WaitKind::backoff:
      return "backoff";
    case WaitKind::notify:
      return "notify";
    case WaitKind::queue:
      return "queue";
  }
  return "?";
}

std::string to_string(const WaitPolicy& policy) {
  switch (policy.kind) {
    case WaitKind::poll:
      return fmt::format("poll:{}", format_duration(policy.min));
    case WaitKind::backoff:
      return fmt::format("backoff:{}..{}", format_duration(policy.min),
                         format_duration(policy.max));
    default:
      return std::string(to_string(policy.kind));
  }
}

tl::expected<WaitPolicy, std::string> parse_wait_policy(std::string_view text) {
  const auto malformed = [&](std::string_view why) {
    return tl::unexpected(
        fmt::format("\"{}\" is not a way to wait{}: poll:INTERVAL, backoff:MIN..MAX, such as "
                    "backoff:1ms..100ms, or notify",
                    text, why));
  };
  if (text == "notify") return WaitPolicy::notify();
  if (text.starts_with("poll:")) {
    const auto interval = parse_duration(text.substr(5));
    if (!interval) return malformed("");
    return WaitPolicy::poll(*interval);
  }
  if (text.starts_with("backoff:")) {
    const std::string_view bounds = text.substr(8);
    const std::size_t dots = bounds.find("..");
    if (dots == std::string_view::npos) return malformed("");
    const auto min = parse_duration(bounds.substr(0, dots));
    const auto max = parse_duration(bounds.substr(dots + 2));
    if (!min || !max) return malformed("");
    if (*min <= Duration::zero() || *min > *max) return malformed(" (0 < MIN <= MAX)");
    return WaitPolicy::backoff(*min, *max);
  }
  return malformed("");
}

}  // namespace lockbench
