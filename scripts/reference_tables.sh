#!/usr/bin/env bash
# Updates the reference tables in README.md and docs/*.md from results/reference: in each page, what stands between
# "<!-- reference: NAME -->" and "<!-- end -->". Argument: the lockbench program to use (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/.."
lockbench=${1:-}
if [ -z "$lockbench" ]; then
  scripts/install_packages.sh build
  scripts/build.sh release -DLOCKBENCH_TESTS=OFF -- lockbench lockbench-supervisor
  lockbench=build/release/lockbench
fi
updated=$(mktemp)
trap 'rm -f "$updated"' EXIT
shopt -s nullglob
for page in README.md docs/*.md; do
  "$lockbench" reference-tables "$page" results/reference/*.json >"$updated"
  cat "$updated" >"$page"
done
