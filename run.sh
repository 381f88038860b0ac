#!/usr/bin/env bash
# Installs what is missing, builds, and runs lockbench with the arguments given; without any, its main
# job: the comparison of all strategies.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
"$here/scripts/install_packages.sh" build run
"$here/scripts/build.sh" release -DLOCKBENCH_TESTS=OFF -- lockbench lockbench-supervisor
exec "$here/build/release/lockbench" "$@"
