#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/env.h"

namespace lockbench {

enum class WaitKind { poll, backoff, random, notify, queue };

/// How a client waits before it asks again for a lock that is taken.
struct WaitPolicy {
  WaitKind kind = WaitKind::poll;
  Duration min{};  ///< poll: the interval; backoff: the first bound; random: the shortest wait
  Duration max{};  ///< backoff: the highest bound; random: the longest wait

  static WaitPolicy poll(Duration interval) { return {WaitKind::poll, interval, interval}; }
  static WaitPolicy backoff(Duration min, Duration max) { return {WaitKind::backoff, min, max}; }
  static WaitPolicy random(Duration min, Duration max) { return {WaitKind::random, min, max}; }
  static WaitPolicy notify() { return {.kind = WaitKind::notify}; }

  /// The next wait, after `earlier_waits`. poll: the interval. backoff: exponential with full
  /// jitter, uniform in [0, min(max, min * 2^earlier_waits)) (Marc Brooker, "Exponential Backoff
  /// and Jitter", 2015). random: uniform in [min, max).
  Duration delay(std::uint32_t earlier_waits, Env& env) const;

  bool operator==(const WaitPolicy&) const = default;
};

std::string_view to_string(WaitKind kind);
/// "poll:100ms", "backoff:1ms..100ms", "random:50ms..250ms", "notify", "queue"
std::string to_string(const WaitPolicy& policy);
/// Parses the value of `--wait`; the error says what is allowed.
tl::expected<WaitPolicy, std::string> parse_wait_policy(std::string_view text);

}  // namespace lockbench
