#!/usr/bin/env bash
# Makes the reference results anew, on this machine, which should have nothing else to do: about twelve minutes.
# README.md's tables and `lockbench choose` rest on them. Arguments: a lockbench to use; else the release build.
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
  # What was measured is saved; 3, a play that is not what is declared, is shown by the tables.
  if [ $code -ne 0 ]; then echo "reference: lockbench $* ended with exit code $code" >&2; fi
  [ $code -eq 0 ] || [ $code -eq 2 ] || [ $code -eq 3 ] || exit $code
  "$lockbench" thin "$whole/$name.json" >"$whole/thin.json"
  mv "$whole/thin.json" "results/reference/$name.json"
}

make runs run all --duration 3s
# One client that nobody contends with: what a lock costs by itself.
make alone run all --clients 1 --duration 3s
make hazards hazards
make renewal renewal --held 1 --held 100 --held 1000 --held 10000 --most-threads 1000
make quorum quorum
make dose hazards --dose
scripts/readme_tables.sh "$lockbench"
# From the whole files: thinned ones have no timelines of the plays. The comparison first, as on any page.
"$lockbench" report "$whole"/{runs,hazards,renewal,quorum,dose}.json --out results/reference/report.html
