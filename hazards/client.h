#pragma once

#include <cstddef>

namespace lockbench::hazards {

/// A request or an answer has at most so many bytes.
inline constexpr std::size_t kLongestMessage = std::size_t{64} << 10;

/// Main loop of a client process: reads requests from `in`, a socket that keeps messages apart
/// (SOCK_SEQPACKET), each a JSON object, and answers each on `out`, until `in` ends. The first
/// request configures the client: {"strategy", "endpoints": {backend: [url, ...]}, "counter": a
/// Redis URL, "checks_fencing", "client": its number, "clients_on": "fibers" or "threads", "renew":
/// false for no renewal timer, "renew_cap_ns", "wait" and "node_timeout_ns": null for the
/// strategy's default, "wait_replicas", "command_timeout_ns"}. Further requests:
///
///   {"do": "acquire", "key", "ttl_ns", "wait_ns"}   → {"outcome", "lease", "asked_ns",
///         "answered_ns", "valid_until_ns", "fencing", "commands", "rounds", "split_votes",
///         "reason"}; if it has to wait, {"event": "waiting"} is sent first, once. "at_ns": start
///         at this time. "release_at_once": true: release before answering
///   {"do": "release", "lease"}
///   {"do": "renew", "lease", "ttl_ns"}
///   {"do": "read", "lease", "key"}         the protected counter
///   {"do": "write", "lease", "key"}        what was read, plus one
///   {"do": "belief", "lease", "within_ns"} → {"valid", "valid_until_ns", "lost_at_ns", "now_ns"}
///         as soon as the lease is not valid, at the latest after within_ns
///   {"do": "arm", "action", "place", "command"}     a CommandFault
///   {"do": "shift_clock", "by_ns"}         moves the wall clock that this client sees
///
/// Times are nanoseconds of CLOCK_BOOTTIME (BootClock), which all processes of a machine share. A
/// failed request is answered with {"error"}. Returns the exit code.
int serve_client(int in, int out);

}  // namespace lockbench::hazards
