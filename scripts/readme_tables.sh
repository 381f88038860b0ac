#!/usr/bin/env bash
# Draws README.md's tables anew from results/reference. Arguments: a lockbench to use; else the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
lockbench=${1:-}
if [ -z "$lockbench" ]; then
  scripts/install_packages.sh build
  scripts/build.sh release -DLOCKBENCH_TESTS=OFF -- lockbench lockbench-supervisor
  lockbench=build/release/lockbench
fi
page=$(mktemp)
trap 'rm -f "$page"' EXIT
"$lockbench" readme-tables README.md results/reference/*.json >"$page"
cat "$page" >README.md
