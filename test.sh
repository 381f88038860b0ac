#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: under ThreadSanitizer, under AddressSanitizer
# and UndefinedBehaviorSanitizer, and optimised. A server that is missing fails its tests.
# Usage: test.sh [ctest arguments]: with any, only the optimised build is tested, with them.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
scripts/install_packages.sh build run test

# Most suites wait more than they work.
parallel=(--parallel "$(($(nproc) * 2))")

# The sanitizers' reports end a test with a failure of its own.
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan_suppressions.txt"
sanitizers=(tsan asan)
[ $# -eq 0 ] || sanitizers=()
for preset in "${sanitizers[@]}"; do
  echo "== $preset" >&2
  scripts/build.sh "$preset" -DLOCKBENCH_TESTS=ON -- sanitized_tests
  ctest --preset "$preset" --label-regex sanitize "${parallel[@]}"
done
echo "== release" >&2
scripts/build.sh release -DLOCKBENCH_TESTS=ON
ctest --preset release "${parallel[@]}" "$@"
