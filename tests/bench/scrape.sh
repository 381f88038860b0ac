#!/usr/bin/env bash
# Cost of one scrape per second for a run under full load: sections per second of redis-set-nx-lua, a key per
# client, with /metrics scraped and without, in turn on one server; the median lost
# share over the pairs. Exits 1 if that is above 1 %. Needs an otherwise idle machine.
# Usage: scrape.sh     PAIRS=20 SECONDS_EACH=3 CLIENTS=8 change the length and the load
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/common.sh
pairs=${PAIRS:-20}
seconds=${SECONDS_EACH:-3}
clients=${CLIENTS:-8}
lockbench=${LOCKBENCH:-build/release/lockbench}

work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
metrics=$((port + 1))
server=
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
start_redis "$port" "$work"

scrape() { # one answer, read whole
  exec 3<>"/dev/tcp/127.0.0.1/$metrics" || return 1
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
  cat <&3 >"$work/page"
  exec 3>&-
}

sections() { # with|without
  local arguments=(run redis-set-nx-lua --load reacquire --redis "redis://127.0.0.1:$port" --clients "$clients"
    --keys per-client --duration "${seconds}s" --quiet --format json --out "$work/result.json")
  [ "$1" = without ] || arguments+=(--metrics-listen "127.0.0.1:$metrics")
  "$lockbench" "${arguments[@]}" >/dev/null &
  local pid=$! scrapes=0
  while kill -0 $pid 2>/dev/null; do
    read -rt 1 <> <(:) || true
    [ "$1" = without ] || { scrape 2>/dev/null && scrapes=$((scrapes + 1)); } || true
  done
  wait $pid
  [ "$1" = without ] || [ "$scrapes" -ge "$seconds" ] || { echo "only $scrapes scrapes" >&2; return 1; }
  awk -F'[:,]' '/"sections_per_second"/ { print $2 + 0 }' "$work/result.json"
}

: >"$work/lost"
for pair in $(seq "$pairs"); do
  # Alternate the order, as the machine drifts.
  if [ $((pair % 2)) -eq 0 ]; then
    without=$(sections without) with=$(sections with)
  else
    with=$(sections with) without=$(sections without)
  fi
  awk -v a="$without" -v b="$with" 'BEGIN { print (a - b) / a }' >>"$work/lost"
  printf 'pair %2d: %8.0f/s without, %8.0f/s with\n' "$pair" "$without" "$with"
done
sort -g "$work/lost" | awk '{ v[NR] = $1 } END {
  median = (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
  printf("lost by a scrape a second: %.2f %% (median of %d pairs; quartiles %.2f %% to %.2f %%)\n", 100 * median, NR,
         100 * v[int((NR + 3) / 4)], 100 * v[int((3 * NR + 3) / 4)])
  exit median > 0.01 }'
