#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lockbench::loadgen {

/// Why a section did not get its lock. A fixed list, so that it can be a label of a metric.
enum class FailureReason : std::size_t {
  taken,
  refused,
  auth,
  oom,
  readonly,
  busy,
  timeout,
  unreachable,
  slow,
  other,
  kinds,
};

struct FailureReasonInfo {
  const char* name;
  const char* meaning;
};

/// By FailureReason.
inline constexpr std::array<FailureReasonInfo, static_cast<std::size_t>(FailureReason::kinds)>
    kFailureReasons{{
        {"taken", "somebody else holds the lock"},
        {"refused", "the lock cannot be granted as safely as requested"},
        {"auth", "the store does not accept the user, the password or the rights"},
        {"oom", "the store has no room left"},
        {"readonly", "the store takes no writes"},
        {"busy", "the store is loading, or runs something else"},
        {"timeout", "the store does not answer in time"},
        {"unreachable", "there is no connection to the store"},
        {"slow", "sections before it took so long that it was never begun"},
        {"other", "something else"},
    }};

constexpr const FailureReasonInfo& info_of(FailureReason reason) {
  return kFailureReasons[static_cast<std::size_t>(reason)];
}

/// By the message of a failed command.
FailureReason reason_of(std::string_view message);

}  // namespace lockbench::loadgen
