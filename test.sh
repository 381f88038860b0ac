#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: under ThreadSanitizer, under AddressSanitizer
# and UndefinedBehaviorSanitizer, and optimised. A server that is missing fails its tests.
# Usage: test.sh [ctest arguments]: with any, only the optimised build is tested, with them.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
. scripts/phases.sh
scripts/install_packages.sh build run test

# Most suites wait more than they work.
parallel=(--parallel "$(($(nproc) * 2))")

# The sanitizers' reports end a test with a failure of its own.
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan_suppressions.txt"

# A library that CMake does not find ends the build: nobody would miss the tests of what is left out without it.
everything=(-DLOCKBENCH_{TESTS,POSTGRES,ETCD,METRICS,MPI}=ON)

# Usage: build PRESET TARGET
build() {
  phase "$1 build" scripts/build.sh "$1" "${everything[@]}" -- "$2"
}

# Nothing is built while tests run: their clients and servers have deadlines, and some watch the load.
build release all
if [ $# -eq 0 ]; then
  for preset in tsan asan; do
    build $preset sanitized_tests
    echo "== $preset" >&2
    phase "$preset tests" ctest --preset $preset --label-regex sanitize "${parallel[@]}"
  done
fi
print_phases
echo "== release" >&2
# Last: ctest's own summary ends the output.
ctest --preset release "${parallel[@]}" "$@"
