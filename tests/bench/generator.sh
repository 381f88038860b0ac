#!/usr/bin/env bash
# Is the load generator the bottleneck? Commands per second through redis-set-nx-lua, a key per client, against
# redis-benchmark sending the same two commands on as many connections to the same server, in turn: the harmonic mean of
# their rates, with locks there for the release to free. Prints for each number of clients the medians, the ratio of
# lockbench to redis-benchmark, lockbench's memory per client (peak resident size divided by the clients), and the
# server's share of a core: near 100 %, the server is the limit. Exits 2 if a ratio is below 1.0 (one client), 1.4 (up to
# 1,000) or 1.25 (more), or if with 8,000 clients or more each takes over 16 KiB. "-": could not be measured. Needs an
# otherwise idle machine.
# Usage: generator.sh [CLIENTS...]     default: 1 50 8000 18000
# ROUNDS=5 SECONDS_EACH=3 change the length, CSV=FILE also writes the figures, OPTIONS='--threads 2' adds options.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/common.sh
clients=("${@:-1}")
[ $# -gt 0 ] || clients=(1 50 8000 18000)
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
lockbench=${LOCKBENCH:-build/release/lockbench}
csv=${CSV:-/dev/null}
read -ra options <<<"${OPTIONS:-}"
ulimit -n "$(ulimit -Hn)"

work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
server=
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
start_redis "$port" "$work" --maxclients 20000 --tcp-backlog 4096

token=0123456789abcdef0123456789abcdef
sha=$(redis-cli -p "$port" -x script load <strategies/redis/release_if_token.lua)

# Requests per second of one command, over about as long as lockbench measures.
benchmark() { # clients requests command...
  local connections=$1 requests=$2
  shift 2
  redis-benchmark -p "$port" -c "$connections" -n "$requests" -r "${keys:-1000000000}" --csv "$@" 2>/dev/null |
    awk -F'","' 'END { gsub(/"/, "", $2); print $2 }'
}

# One round of each, with $n clients on an empty server.
run_theirs() {
  set_rate=$(benchmark "$n" "$requests" SET key:__rand_int__ $token NX PX 10000)
  redis-cli -p "$port" eval "for i=0,$((2 * requests)) do redis.call('SET', string.format('key:%012d', i), ARGV[1]) end" 0 $token >/dev/null
  sha_rate=$(keys=$((2 * requests)) benchmark "$n" "$requests" EVALSHA "$sha" 1 key:__rand_int__ $token)
  awk -v a="$set_rate" -v b="$sha_rate" 'BEGIN { print 2 / (1 / a + 1 / b) }' >>"$work/theirs"
}
run_ours() {
  rm -f "$work/result.json"
  "$lockbench" run redis-set-nx-lua --redis "redis://127.0.0.1:$port" --clients "$n" \
    --load reacquire --keys per-client --duration "${seconds}s" --quiet --format json --out "$work/result.json" \
    "${options[@]}" >/dev/null &
  local pid=$! peak=0 now
  while kill -0 $pid 2>/dev/null; do
    now=$(awk '/^VmHWM/ { print $2 }' /proc/$pid/status 2>/dev/null || true)
    [ -n "$now" ] && [ "$now" -gt "$peak" ] && peak=$now
    read -rt 0.1 <> <(:) || true
  done
  if ! wait $pid; then
    echo "$n clients: lockbench failed" >&2
    return
  fi
  echo "$peak" >>"$work/memory"
  python3 - "$work/result.json" "$work/server" >>"$work/ours" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
print(run["sections_per_second"] * run["commands_per_section"])
print(100 * run["sections_per_second"] * run["server_cpu_seconds_per_section"], file=open(sys.argv[2], "a"))
for reason in run["generator"]["reasons"]:
    print("invalid:", reason, file=sys.stderr)
PYTHON
}

missed=0
echo "clients,redis_benchmark,lockbench,kib_per_client,server_cpu_percent" >"$csv"
printf '%8s %22s %16s %7s %10s %s\n' clients "redis-benchmark cmd/s" "lockbench cmd/s" ratio "KiB/client" "server CPU"
for n in "${clients[@]}"; do
  # A short trial, so that all rounds last about as long.
  rate=$(benchmark "$n" $((20000 + 4 * n)) SET key:__rand_int__ $token NX PX 10000)
  requests=$(awk -v r="$rate" -v s="$seconds" 'BEGIN { printf "%d", r * s / 2 }')
  for side in theirs ours memory server; do : >"$work/$side"; done
  for round in $(seq "$rounds"); do
    sides=(theirs ours)
    for turn in 0 1; do
      redis-cli -p "$port" flushall >/dev/null
      "run_${sides[(round + turn) % 2]}" # so that neither side always comes first
    done
  done
  awk -v n="$n" -v theirs="$(median <"$work/theirs")" -v ours="$(median <"$work/ours")" \
    -v peak="$(median <"$work/memory")" -v server="$(median <"$work/server")" -v csv="$csv" 'BEGIN {
    ratio = ours / theirs; kib = peak / n
    kib_shown = n < 1000 ? "-" : sprintf("%.1f", kib)
    printf("%8d %22.0f %16.0f %7.3f %10s %8.0f %%\n", n, theirs, ours, ratio, kib_shown, server)
    printf("%d,%.0f,%.0f,%s,%.0f\n", n, theirs, ours, kib_shown, server) >>csv
    exit ratio < (n == 1 ? 1.0 : n < 1000 ? 1.4 : 1.25) || (n >= 8000 && kib > 16)
  }' || missed=2
done
exit $missed
