#!/usr/bin/env bash
# Measures the reference results again on this machine, which should be idle: takes about twelve minutes.
# The reference tables and `lockbench choose` use them. Argument: the lockbench program to use (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/.."
lockbench=${1:-}
if [ -z "$lockbench" ]; then
  scripts/install_packages.sh build run
  scripts/build.sh release -DLOCKBENCH_TESTS=OFF -- lockbench lockbench-supervisor
  lockbench=build/release/lockbench
fi
whole=$(mktemp -d)
trap 'rm -rf "$whole"' EXIT
mkdir -p results/reference

# Usage: make NAME COMMAND...: what the command measured becomes results/reference/NAME.json.
make() {
  local name=$1 code=0
  shift
  echo "reference: $*" >&2
  "$lockbench" "$@" --quiet --out "$whole/$name.json" >/dev/null || code=$?
  # lockbench saves what it measured; exit code 3 (a hazard differs from its declaration) shows in the tables.
  if [ $code -ne 0 ]; then echo "reference: lockbench $* ended with exit code $code" >&2; fi
  [ $code -eq 0 ] || [ $code -eq 2 ] || [ $code -eq 3 ] || exit $code
  "$lockbench" condense "$whole/$name.json" >"$whole/condensed.json"
  mv "$whole/condensed.json" "results/reference/$name.json"
}

make runs run all --duration 3s
# One client without contention: the cost of the lock itself.
make alone run all --clients 1 --duration 3s
make hazards hazards
make renewal renewal --held 1 --held 100 --held 1000 --held 10000 --most-threads 1000
make quorum quorum
make dose hazards --dose
scripts/reference_tables.sh "$lockbench"
# The report needs the complete files: condensed ones have no timelines. The comparison comes first.
"$lockbench" report "$whole"/{runs,hazards,renewal,quorum,dose}.json --out results/reference/report.html
