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
  phase "$1 build" nice -n "${niceness:-0}" scripts/build.sh "$1" "${everything[@]}" -- "$2"
}

# Runs the sanitized suites of a preset, which mostly wait for servers, and meanwhile builds the next preset with
# what they leave of the processors. Usage: test_and_build TESTED BUILT TARGET
test_and_build() {
  echo "== $1 (and building $2)" >&2
  niceness=19 build "$2" "$3" &
  local building=$! code=0
  phase "$1 tests" ctest --preset "$1" --label-regex sanitize "${parallel[@]}" || code=$?
  wait "$building" || code=$?
  return $code
}

if [ $# -gt 0 ]; then
  build release all
else
  build tsan sanitized_tests
  test_and_build tsan asan sanitized_tests
  test_and_build asan release all
fi
print_phases
echo "== release" >&2
# Nothing is built meanwhile: some suites watch the load. ctest's summary is the last that is printed.
ctest --preset release "${parallel[@]}" "$@"
