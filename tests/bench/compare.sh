#!/usr/bin/env bash
# False alarms and power of `lockbench compare` on real results, see compare_splits.py: records 20 repetitions of
# the comparison in the README, and 20 valid ones of redis-queue under each of two hold times. The longer hold makes
# each wait in the queue about a fifth longer; `compare` shows the real difference of the 99th percentile.
# Needs a release build, and half an hour on an otherwise idle machine. It can be stopped, and continues when
# it is called again with the same folder.
# Usage: compare.sh [FOLDER]     folder of the results; CPU=command is put before each measurement
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$PWD/${BUILD:-build/release}/lockbench
work=${1:-results/runs/compare}
mkdir -p "$work"

configuration() { # name hold
  printf 'strategies = ["redis-queue"]\nhold = "%s"\nout = "%s"\nresume = true\n' "$2" "$work/$1.json" >"$work/$1.toml"
}
configuration fast 1ms
configuration slow 1300us
valid() { # name: how many of its runs are
  "$program" show "$work/$1.json" --format csv --columns valid | grep -c true || true
}
# A few at a time, to free the machine for others in between.
for n in $(seq 4 4 100); do
  ${CPU:-} "$program" compare --run "$work/fast.toml" "$work/slow.toml" --repeat "$n" --quiet >/dev/null
  if [ "$(valid fast)" -ge 20 ] && [ "$(valid slow)" -ge 20 ]; then break; fi
done
for n in $(seq 2 2 20); do
  ${CPU:-} "$program" run 'redis-*' --repeat "$n" --out "$work/same.json" --resume --quiet >/dev/null
done
${CPU:-} tests/bench/compare_splits.py "$program" "$work"/{same,fast,slow}.json
