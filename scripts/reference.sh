#!/usr/bin/env bash
# Measures the reference results on this machine, which should be idle. Takes four hours; can be stopped and
# restarted: complete results in build/reference are kept. Argument: the lockbench program to use (default: the
# release build).
set -euo pipefail
cd "$(dirname "$0")/.."
lockbench=${1:-}
if [ -z "$lockbench" ]; then
  scripts/install_packages.sh build run test
  scripts/build.sh release -DLOCKBENCH_TESTS=OFF -- lockbench lockbench-supervisor
  lockbench=build/release/lockbench
fi
whole=build/reference
mkdir -p $whole results/reference

# Usage: measure NAME COMMAND...: saves $whole/NAME.json, which is complete once $whole/NAME.done exists.
measure() {
  local name=$1 code=0
  shift
  [ ! -e "$whole/$name.done" ] || return 0
  echo "reference: $*" >&2
  "$lockbench" "$@" --quiet --out "$whole/$name.json" >/dev/null || code=$?
  # lockbench saves its results also with these codes; the tables show a hazard that differs from its declaration (3).
  if [ $code -ne 0 ]; then echo "reference: lockbench $* ended with exit code $code" >&2; fi
  [ $code -eq 0 ] || [ $code -eq 2 ] || [ $code -eq 3 ] || exit $code
  touch "$whole/$name.done"
}

measure alone run all --load alone --duration 10s --repeat 5 --resume
measure near-demand run all --load demand --duration 10s --repeat 5 --resume
measure far-demand run all --load demand --rtt 1ms --duration 10s --repeat 5 --resume
measure near-saturated run all --load saturated --duration 10s --repeat 5 --resume
# With a network the longest waits of polling locks scatter by more than they differ: more repetitions.
measure far-saturated run all --load saturated --rtt 1ms --duration 10s --repeat 10 --resume
measure hazards hazards
measure renewal renewal --held 1 --held 100 --held 1000 --held 10000 --pairs 10
measure quorum quorum
for result in "$whole"/*.json; do
  scripts/condense.py "$lockbench" "$result" >"results/reference/$(basename "$result")"
done
scripts/reference_tables.py "$lockbench"
echo "reference: complete; remove $whole before measuring again" >&2
