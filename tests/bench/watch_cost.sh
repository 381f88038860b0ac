#!/usr/bin/env bash
# Cost of a watch for the watched Redis: the same load without and with `lockbench watch`, in turn (ABBA), on one private
# server. Prints for each load the sections per second, and the server's CPU time per section, with the ratio of the
# medians. Loads: 1,000 and 20,000 lock operations per second (a section is two), and as fast as possible.
# Exits 1 if the throughput with a watch is below 98 % and 90 % of that without, at the two rates.
# Needs a release build, redis-server and an otherwise idle machine.
# Usage: watch_cost.sh       ROUNDS=4 SECONDS_EACH=5 LOCKBENCH=build/release/lockbench BUDGET=200 change it
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/common.sh
rounds=${ROUNDS:-4}
seconds=${SECONDS_EACH:-5}
budget=${BUDGET:-200}
lockbench=$(realpath "${LOCKBENCH:-build/release/lockbench}")
work=$(mktemp -d)
watch='' server=''
port=$((20000 + RANDOM % 10000))
stop_watch() {
  [ -z "$watch" ] || { kill -INT "$watch" && wait "$watch" || true; } 2>/dev/null
  watch=
}
trap 'stop_watch; kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
start_redis "$port" "$work"

cpu() { redis-cli -p "$port" info cpu | awk -F: '/^used_cpu_(user|sys):/ { all += $2 } END { print all }'; }
# load's name, without or with, options of the load
measure() {
  if [ "$2" = with ]; then
    "$lockbench" watch --redis "redis://127.0.0.1:$port" --locks 'lockbench:*' --budget "$budget" --no-screen --quiet \
      >"$work/watch" 2>&1 &
    watch=$!
    for _ in $(seq 100); do redis-cli -p "$port" client list | grep -q 'flags=t' && break; read -rt 0.05 <> <(:) || true; done
  fi
  local before
  before=$(cpu)
  "$lockbench" run redis-set-nx-lua --redis "redis://127.0.0.1:$port" --clients 16 --keys per-client --warmup 0s --hold 0ms \
    --duration "${seconds}s" --quiet --format json --out "$work/result.json" "${@:3}" >/dev/null
  awk -F'[:,]' -v name="$1" -v side="$2" -v cpu="$(cpu)" -v before="$before" -v work="$work" -v s="$seconds" '
    /"sections_per_second"/ {
      print $2 > work "/" name "." side ".rate.now"
      print (cpu - before) / ($2 * s) * 1e6 > work "/" name "." side ".cpu.now"
      printf("  %s a watch: %.0f sections/s, %.1f us of the server each\n", side, $2, (cpu - before) / ($2 * s) * 1e6)
      exit }' "$work/result.json"
  for figure in rate cpu; do cat "$work/$1.$2.$figure.now" >>"$work/$1.$2.$figure"; done
  stop_watch
}

failed=0
compare() { # load's name, least share of the throughput, options of the load
  local least=$2
  for round in $(seq "$rounds"); do
    echo "$1, round $round"
    local sides=(without with)
    [ $((round % 2)) = 1 ] || sides=(with without) # so that neither always comes first
    for side in "${sides[@]}"; do measure "$1" "$side" "${@:3}"; done
  done
  awk -v name="$1" -v least="$least" \
    -v a="$(median <"$work/$1.without.rate")" -v b="$(median <"$work/$1.with.rate")" \
    -v c="$(median <"$work/$1.without.cpu")" -v d="$(median <"$work/$1.with.cpu")" 'BEGIN {
      printf("%s: throughput %.1f %% of that without, CPU of the server for each section %+.1f %%\n", name, 100 * b / a, 100 * (d / c - 1))
      exit b / a < least }' || failed=1
}

compare slow 0.98 --rate 500
compare fast 0.90 --rate 10000
compare flat-out 0
exit $failed
