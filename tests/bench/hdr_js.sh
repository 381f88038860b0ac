#!/usr/bin/env bash
# Does HdrHistogram's library for JavaScript (npm: hdr-histogram-js) read what --hdr writes, with the same
# counts, percentiles and percentile output? A short run, its files, and a reader in Node. Needs node, npm
# and their registry; exits 1 on any difference.
# Usage: hdr_js.sh      LOCKBENCH=build/release/lockbench chooses the program
set -euo pipefail
cd "$(dirname "$0")/../.."
lockbench=$(readlink -f "${LOCKBENCH:-build/release/lockbench}")
script=$(readlink -f tests/bench/hdr_js.mjs)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-fund --no-audit hdr-histogram-js@3.0.1 >npm.log 2>&1 || { cat npm.log >&2; exit 1; }
"$lockbench" run none local-mutex redis-set-nx-lua redis-queue --repeat 2 --duration 500ms --hold 'exp(20us)' \
  --hdr hdr --out result.json --quiet >/dev/null
node "$script" hdr result.json
