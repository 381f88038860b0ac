#!/usr/bin/env bash
# The etcd strategy against the lock of npm's etcd3, in sections per second: a key per client, on one private
# server with fsync on, in turn. Prints the medians and their ratio, and the time of one fdatasync on the disk,
# as that dominates. Exits 1 if the ratio is below 2. Needs a release build, etcd, node and npm.
# Usage: etcd.sh [CLIENTS]     default: 8; ROUNDS=5 SECONDS_EACH=3 change the length
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/common.sh
clients=${1:-8}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
lockbench=${LOCKBENCH:-build/release/lockbench}
peer=tests/bench/etcd
[ -d "$peer/node_modules/etcd3" ] || (cd "$peer" && npm install --no-package-lock --no-audit --no-fund --silent)

work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
address=127.0.0.1:$port
etcd --data-dir "$work/data" --listen-client-urls "http://$address" --advertise-client-urls "http://$address" \
  --listen-peer-urls "http://127.0.0.1:$((port + 1))" >"$work/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do grep -q "ready to serve" "$work/log" && break; read -rt 0.1 <> <(:) || true; done

entries() { # raft entries so far
  node -e 'fetch(`http://${process.argv[1]}/v3/maintenance/status`, { method: "POST", body: "{}" })
    .then((answer) => answer.json()).then((status) => console.log(status.raftIndex))' "$address"
}

dd if=/dev/zero of="$work/probe" bs=512 count=500 oflag=dsync 2>&1 | awk -F', ' 'END { sub(/ s$/, "", $3); printf("one synchronous write: %.0f us\n", $3 / 500 * 1e6) }'
: >"$work/theirs"; : >"$work/ours"
run_theirs() {
  node "$peer/peer.js" "$address" "$clients" "$seconds" | tee -a "$work/theirs" >"$work/last_of_theirs"
}
run_ours() {
  "$lockbench" run etcd --load reacquire --etcd "http://$address" --clients "$clients" --keys per-client --duration "${seconds}s" \
    --quiet --format json --out "$work/result.json" >/dev/null
  awk -F'[:,]' '/"sections_per_second"/ { print $2; exit }' "$work/result.json" | tee -a "$work/ours" >"$work/last_of_ours"
}
declare -A entries_of
for round in $(seq "$rounds"); do
  sides=(theirs ours)
  [ $((round % 2)) = 1 ] || sides=(ours theirs) # neither always comes first
  for side in "${sides[@]}"; do
    before=$(entries)
    "run_$side"
    entries_of[$side]=$(($(entries) - before))
  done
  awk -v r="$round" -v s="$seconds" -v a="$(cat "$work/last_of_theirs")" -v b="$(cat "$work/last_of_ours")" \
    -v x="${entries_of[theirs]}" -v y="${entries_of[ours]}" 'BEGIN {
    printf("round %d: etcd3 %.0f/s, %.1f raft entries a section; lockbench %.0f/s, %.1f\n", r, a, x / (a * (s + 0.5)), b, y / (b * (s + 0.5))) }'
done
theirs=$(median <"$work/theirs")
ours=$(median <"$work/ours")
awk -v a="$theirs" -v b="$ours" -v n="$clients" 'BEGIN {
  printf("%d clients: etcd3 %.0f sections/s, lockbench etcd %.0f, ratio %.2f\n", n, a, b, b / a)
  exit b / a < 2 }'
