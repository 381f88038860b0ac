#include "loadgen/record/failure_reason.h"

#include <algorithm>

namespace lockbench::loadgen {
namespace {

struct Sign {
  std::string_view text;
  FailureReason reason;
};

/// What servers and the connections to them write. The first that is found counts.
constexpr auto kSigns = std::to_array<Sign>({
    {"NOAUTH", FailureReason::auth},
    {"WRONGPASS", FailureReason::auth},
    {"NOPERM", FailureReason::auth},
    {"AUTH was refused", FailureReason::auth},
    {"not authenticated", FailureReason::auth},
    {"invalid auth token", FailureReason::auth},
    {"authentication", FailureReason::auth},
    {"unauthenticated", FailureReason::auth},
    {"certificate", FailureReason::auth},
    {"permission denied", FailureReason::auth},
    {"pg_hba.conf", FailureReason::auth},
    {"OOM ", FailureReason::oom},
    {"out of memory", FailureReason::oom},
    {"MEMORY ALLOCATION", FailureReason::oom},
    {"space exceeded", FailureReason::oom},
    {"No space left", FailureReason::oom},
    {"READONLY", FailureReason::readonly},
    {"read-only", FailureReason::readonly},
    {"is a replica", FailureReason::readonly},
    {"MISCONF", FailureReason::readonly},
    {"NOREPLICAS", FailureReason::readonly},
    {"LOADING", FailureReason::busy},
    {"BUSY ", FailureReason::busy},
    {"starting up", FailureReason::busy},
    {"no answer within", FailureReason::timeout},
    {"no connection within", FailureReason::timeout},
    {"timed out", FailureReason::timeout},
    {"timeout", FailureReason::timeout},
    {"TIMEOUT", FailureReason::timeout},
    {"onnection", FailureReason::unreachable},
    {"CONNECTION", FailureReason::unreachable},
    {"failed to connect", FailureReason::unreachable},
    {"SERVER HAS FAILED", FailureReason::unreachable},
    {"no ZooKeeper answers", FailureReason::unreachable},
    {"session expired", FailureReason::unreachable},
    {"unreachable", FailureReason::unreachable},
    {"looked up", FailureReason::unreachable},
    {"TLS", FailureReason::unreachable},
    {"No route", FailureReason::unreachable},
    {"no sentinel knows", FailureReason::unreachable},
    {"No such file", FailureReason::unreachable},
});

}  // namespace

FailureReason reason_of(std::string_view message) {
  const auto found = std::ranges::find_if(
      kSigns, [&](const Sign& sign) { return message.find(sign.text) != std::string_view::npos; });
  return found == kSigns.end() ? FailureReason::other : found->reason;
}

}  // namespace lockbench::loadgen
