#!/usr/bin/env bash
# Installs missing packages, builds lockbench, and runs it with the given arguments; without any, it
# compares the typical strategy of each family.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
"$here/scripts/install_packages.sh" build run
"$here/scripts/build.sh" release -DLOCKBENCH_TESTS=OFF -- lockbench lockbench-supervisor
exec "$here/build/release/lockbench" "$@"
