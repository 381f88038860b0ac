#pragma once

namespace lockbench::hazards {

/// The life of one client process: reads requests from `in`, one JSON object a line, and answers
/// each on `out`, until `in` ends. The first says who it is: {"strategy", "endpoints": {backend:
/// [url, ...]}, "counter": a Redis URL, "checks_fencing", "client": its number, "renew": false to
/// have no timer, "renew_cap_ns", "wait", "node_timeout_ns" and "wait_replicas": null for the
/// strategy's own, "command_timeout_ns"}. Then come
///
///   {"do": "acquire", "key", "ttl_ns", "wait_ns"}   → {"outcome", "lease", "asked_ns",
///         "answered_ns", "valid_until_ns", "fencing", "commands", "rounds", "split_votes",
///         "reason"}; if it has to wait, {"event": "waiting"} is told first, once; with "at_ns":
///         not before then; with "release_at_once": true what is granted is given back before the
///         answer
///   {"do": "release", "lease", "key"}      a lease that was never granted: -1, with a key
///   {"do": "renew", "lease", "ttl_ns"}
///   {"do": "read", "lease", "key"}         the protected counter
///   {"do": "write", "lease", "key"}        what was read, plus one
///   {"do": "belief", "lease", "within_ns"} → {"valid", "valid_until_ns", "lost_at_ns", "now_ns"}
///         as soon as it is not valid, or when that time is up
///   {"do": "arm", "action", "place", "command"}     a CommandFault
///   {"do": "shift_clock", "by_ns"}         the wall clock, as this client sees it
///
/// Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share. What cannot be
/// done is answered with {"error"}. Returns the exit code.
int serve_client(int in, int out);

}  // namespace lockbench::hazards
