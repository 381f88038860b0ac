#!/usr/bin/env bash
# Is the load generator the bottleneck? Commands per second through redis-set-nx-lua, a key per client,
# against redis-benchmark sending the same two commands on as many connections to the same server, in turn:
# the harmonic mean of their rates, with locks there for the release to free. Prints the ratio of the medians
# for each number of clients, and the memory that each client adds to that of one. Beside them the bare loop:
# a thread and a connection per client on the client library and nothing else, as what a generator of that
# shape can reach on this machine. Needs a build with the tests. Exits 1 if a ratio is
# below 0.95 (0.8 from 1,000 clients on) or a client takes more than 64 KiB. Wants a machine with nothing
# else to do.
# Usage: generator.sh [CLIENTS...]     default: 1 50 8000; ROUNDS=5 SECONDS_EACH=3 change the length
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=("${@:-1}")
[ $# -gt 0 ] || clients=(1 50 8000)
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
lockbench=${LOCKBENCH:-build/release/lockbench}
bare_loop=$(dirname "$lockbench")/lockbench_bare_loop
ulimit -n "$(ulimit -Hn)"

work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no --dir "$work" \
  --maxclients 20000 --tcp-backlog 4096 >"$work/log" 2>&1 &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do redis-cli -p "$port" ping >/dev/null 2>&1 && break; read -rt 0.05 <> <(:) || true; done
redis-cli -p "$port" ping >/dev/null

token=0123456789abcdef0123456789abcdef
sha=$(redis-cli -p "$port" -x script load <strategies/redis/release_if_token.lua)

# Requests per second of one command, over about as long as lockbench measures.
benchmark() { # clients requests command...
  local connections=$1 requests=$2
  shift 2
  redis-benchmark -p "$port" -c "$connections" -n "$requests" -r "${keys:-1000000000}" --csv "$@" 2>/dev/null |
    awk -F'","' 'END { gsub(/"/, "", $2); print $2 }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

peak_of_one=0
missed=0
# One round of each, with $n clients on an empty server.
run_theirs() {
  set_rate=$(benchmark "$n" "$requests" SET key:__rand_int__ $token NX PX 10000)
  redis-cli -p "$port" eval "for i=0,$((2 * requests)) do redis.call('SET', string.format('key:%012d', i), ARGV[1]) end" 0 $token >/dev/null
  sha_rate=$(keys=$((2 * requests)) benchmark "$n" "$requests" EVALSHA "$sha" 1 key:__rand_int__ $token)
  awk -v a="$set_rate" -v b="$sha_rate" 'BEGIN { print 2 / (1 / a + 1 / b) }' >>"$work/theirs"
}
run_bare() {
  "$bare_loop" "$port" "$n" "$seconds" "$sha" >>"$work/bare"
}
run_ours() {
  /usr/bin/env bash -c 'exec "$@"' _ "$lockbench" run redis-set-nx-lua --redis "redis://127.0.0.1:$port" \
    --clients "$n" --keys per-client --duration "${seconds}s" --quiet --format json \
    --out "$work/result.json" >/dev/null &
  pid=$!
  peak=0
  while kill -0 $pid 2>/dev/null; do
    now=$(awk '/^VmHWM/ { print $2 }' /proc/$pid/status 2>/dev/null || true)
    [ -n "$now" ] && [ "$now" -gt "$peak" ] && peak=$now
    read -rt 0.1 <> <(:) || true
  done
  wait $pid || echo "lockbench ended with exit code $?" >&2
  echo "$peak" >>"$work/memory"
  awk -F'[:,]' '/"sections_per_second"/ { s = $2 } /"commands_per_section"/ { c = $2 } END { print s * c }' \
    "$work/result.json" >>"$work/ours"
}
printf '%8s %22s %16s %16s %7s %8s %s\n' clients "redis-benchmark cmd/s" "bare loop cmd/s" "lockbench cmd/s" ratio "to bare" "KiB/client"
for n in "${clients[@]}"; do
  # A short sounding, so that both last about as long.
  rate=$(benchmark "$n" $((20000 + 4 * n)) SET key:__rand_int__ $token NX PX 10000)
  requests=$(awk -v r="$rate" -v s="$seconds" 'BEGIN { printf "%d", r * s / 2 }')
  : >"$work/theirs"; : >"$work/bare"; : >"$work/ours"; : >"$work/memory"
  for round in $(seq "$rounds"); do
    sides=(theirs bare ours)
    for turn in 0 1 2; do
      redis-cli -p "$port" flushall >/dev/null
      "run_${sides[(round + turn) % 3]}" # nobody always comes first
    done
  done
  theirs=$(median <"$work/theirs")
  bare=$(median <"$work/bare")
  ours=$(median <"$work/ours")
  peak=$(median <"$work/memory")
  [ "$n" -eq 1 ] && peak_of_one=$peak
  awk -v n="$n" -v a="$theirs" -v c="$bare" -v b="$ours" -v peak="$peak" -v one="$peak_of_one" 'BEGIN {
    memory = n > 1 ? (peak - one) / (n - 1) : 0
    printf("%8d %22.0f %16.0f %16.0f %7.3f %8.3f %s\n", n, a, c, b, b / a, b / c, (n > 1) ? sprintf("%.1f", memory) : "-")
    exit b / a < (n < 1000 ? 0.95 : 0.8) || memory > (n < 1000 ? 1000 : 64)
  }' || missed=1
done
exit $missed
