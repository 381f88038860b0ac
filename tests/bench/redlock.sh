#!/usr/bin/env bash
# Cost of Redlock on the same five nodes, in one run: one uncontended client, on one node and on five, one
# after the other and in parallel; the bare fan-out (only sockets and poll) as this machine's limit; and
# node-redlock 5 on ioredis, installed from npm into a temporary folder. Prints each
# round's sections per second and acquire p50, then the medians and their ratios. Needs a build, a C compiler,
# node and npm; without npm it leaves out the peer, with a message. Needs an otherwise idle machine.
# Usage: redlock.sh       ROUNDS=5 SECONDS_EACH=3 LOCKBENCH=build/release/lockbench change it
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/common.sh
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
lockbench=$(realpath "${LOCKBENCH:-build/release/lockbench}")
work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; wait "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

base=$((20000 + RANDOM % 10000))
ports=() urls=()
for i in 1 2 3 4 5; do
  port=$((base + i))
  start_redis "$port" "$work"
  servers+=("$server")
  ports+=("$port")
  urls+=(--redis "redis://127.0.0.1:$port")
done

cc -O2 -o "$work/fan_out" tests/bench/redlock/fan_out.c
peer=no
if command -v npm >/dev/null; then
  cp tests/bench/redlock/package.json tests/bench/redlock/peer.mjs "$work"
  (cd "$work" && npm install --silent --no-audit --no-fund >"$work/npm" 2>&1) && peer=yes
fi
[ $peer = yes ] || echo "npm or its packages cannot be had: node-redlock is left out" >&2

# Sections per second and acquire p50 in microseconds, of the run in the JSON file.
figures() {
  awk -F'[:,]' '/"sections_per_second"/ && !s { s = $2 }
    /"acquire": *{/ { in_acquire = 1 }
    in_acquire && /"p50"/ { p = $2 * 1e6; in_acquire = 0; printf "%.0f %.1f\n", s, p; exit }' "$1"
}
run() { # strategy urls...
  "$lockbench" run "$1" "${@:2}" --clients 1 --load reacquire --duration "${seconds}s" --quiet --format json \
    --out "$work/result.json" >/dev/null
  figures "$work/result.json"
}

contestants=(fan-out-1 fan-out-5 redlock-1 parallel-1 redlock-5 parallel-5)
[ $peer = no ] || contestants+=(node-redlock-5)
for round in $(seq "$rounds"); do
  # Rotate, so that no contestant always comes first.
  in_turn=("${contestants[@]:round % ${#contestants[@]}}" "${contestants[@]:0:round % ${#contestants[@]}}")
  for one in "${in_turn[@]}"; do
    case $one in
      fan-out-1) got=$("$work/fan_out" "$seconds" "${ports[0]}") ;;
      fan-out-5) got=$("$work/fan_out" "$seconds" "${ports[@]}") ;;
      redlock-1) got=$(run redlock "${urls[@]:0:2}") ;;
      parallel-1) got=$(run redlock-parallel "${urls[@]:0:2}") ;;
      redlock-5) got=$(run redlock "${urls[@]}") ;;
      parallel-5) got=$(run redlock-parallel "${urls[@]}") ;;
      node-redlock-5) got=$(cd "$work" && node peer.mjs "$seconds" "${ports[@]}") ;;
    esac
    echo "round $round: $one: $got"
    read -r rate p50 <<<"$got"
    echo "$rate" >>"$work/$one.rate"
    echo "$p50" >>"$work/$one.p50"
  done
done
printf '\n%-16s %12s %16s\n' "" "sections/s" "acquire p50 µs"
for one in "${contestants[@]}"; do
  printf '%-16s %12s %16s\n' "$one" "$(median <"$work/$one.rate")" "$(median <"$work/$one.p50")"
done
ratio() { # text a b
  awk -v text="$1" -v a="$(median <"$work/$2")" -v b="$(median <"$work/$3")" 'BEGIN { printf "%-60s %.2f\n", text, a / b }'
}
ratio "acquire p50, parallel, five nodes to one" parallel-5.p50 parallel-1.p50
ratio "the same of the bare fan-out" fan-out-5.p50 fan-out-1.p50
ratio "sections per second, parallel to one after the other" parallel-5.rate redlock-5.rate
ratio "acquire p50, one after the other to parallel" redlock-5.p50 parallel-5.p50
[ $peer = no ] || ratio "sections per second, parallel to node-redlock" parallel-5.rate node-redlock-5.rate
[ $peer = no ] || ratio "sections per second, one after the other to node-redlock" redlock-5.rate node-redlock-5.rate
