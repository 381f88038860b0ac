#include "strategies/waiting/wait_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "strategies/words.h"

namespace lockbench {

namespace {

using namespace std::string_view_literals;

constexpr std::array kWaitKinds{"poll"sv, "backoff"sv, "random"sv, "notify"sv, "queue"sv};

/// Uniform in [0, nanoseconds).
Duration share_of(double nanoseconds, Env& env) {
  const double share = static_cast<double>(env.random() >> 11) * 0x1p-53;
  return Duration(static_cast<std::int64_t>(nanoseconds * share));
}

}  // namespace

Duration WaitPolicy::delay(std::uint32_t earlier_waits, Env& env) const {
  if (kind == WaitKind::random) {
    return min + share_of(static_cast<double>((max - min).count()), env);
  }
  if (kind != WaitKind::backoff) return min;
  // 2^40 ns is above any bound; larger shifts could overflow.
  const double doubled =
      static_cast<double>(min.count()) * static_cast<double>(1ULL << std::min(earlier_waits, 40U));
  return share_of(std::min(doubled, static_cast<double>(max.count())), env);
}

std::string_view to_string(WaitKind kind) { return word_of<WaitKind::queue>(kWaitKinds, kind); }

std::string to_string(const WaitPolicy& policy) {
  if (policy.kind == WaitKind::poll) return fmt::format("poll:{}", format_duration(policy.min));
  const std::string_view kind = to_string(policy.kind);
  if (policy.kind != WaitKind::backoff && policy.kind != WaitKind::random) return std::string(kind);
  return fmt::format("{}:{}..{}", kind, format_duration(policy.min), format_duration(policy.max));
}

tl::expected<WaitPolicy, std::string> parse_wait_policy(std::string_view text) {
  const auto malformed = [&](std::string_view why) {
    return tl::unexpected(
        fmt::format("\"{}\" is not a waiting policy{}; allowed: poll:INTERVAL, backoff:MIN..MAX, "
                    "random:MIN..MAX or notify, for example backoff:1ms..100ms",
                    text, why));
  };
  if (text == "notify") return WaitPolicy::notify();
  if (text.starts_with("poll:")) {
    const auto interval = parse_duration(text.substr(5));
    if (!interval) return malformed("");
    return WaitPolicy::poll(*interval);
  }
  for (const WaitKind kind : {WaitKind::backoff, WaitKind::random}) {
    const std::string prefix = std::string(to_string(kind)) + ":";
    if (!text.starts_with(prefix)) continue;
    const std::string_view bounds = text.substr(prefix.size());
    const std::size_t dots = bounds.find("..");
    if (dots == std::string_view::npos) return malformed("");
    const auto min = parse_duration(bounds.substr(0, dots));
    const auto max = parse_duration(bounds.substr(dots + 2));
    if (!min || !max) return malformed("");
    if (*min <= Duration::zero() || *min > *max) return malformed(" (0 < MIN <= MAX)");
    return WaitPolicy{kind, *min, *max};
  }
  return malformed("");
}

}  // namespace lockbench
