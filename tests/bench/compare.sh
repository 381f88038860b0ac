#!/usr/bin/env bash
# The false alarms of `lockbench compare` on real results: records some of one configuration, one after the
# other, and compares neighbours, see compare_pairs.cc. Needs a build with the tests. Wants a machine with
# nothing else to do: what others do to it between two results is no false alarm, but counts as one.
# Usage: compare.sh [RESULTS...]     none: records RESULTS=30 with REPEAT=5 SECONDS_EACH=1, about 7 minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}
if [ $# -gt 0 ]; then exec "$build/lockbench_compare_pairs" "$@"; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record() { # file arguments...
  local file=$1
  shift
  "$build/lockbench" run redis-set-nx-lua redis-queue --clients 4 --hold 1ms --quiet --out "$file" "$@" >/dev/null
}
for i in $(seq -w 1 "${RESULTS:-30}"); do
  record "$work/$i.json" --repeat "${REPEAT:-5}" --duration "${SECONDS_EACH:-1}s"
done
record "$work/long.json" --duration 60s
"$build/lockbench_compare_pairs" "$work"/*.json
