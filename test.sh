#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: optimised, under AddressSanitizer and
# UndefinedBehaviorSanitizer, and under ThreadSanitizer. Every server is required.
# Usage: test.sh [ctest arguments for the optimised build]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
scripts/install_packages.sh build run test
export LOCKBENCH_REQUIRE_ALL=1

# The sanitizers' reports end a test with a failure of its own.
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
for preset in tsan asan; do
  echo "== $preset" >&2
  scripts/build.sh "$preset" -DLOCKBENCH_TESTS=ON -- sanitized_tests
  ctest --preset "$preset" --label-regex sanitize --parallel 2
done
echo "== release" >&2
scripts/build.sh release -DLOCKBENCH_TESTS=ON
ctest --preset release --parallel 2 "$@"
