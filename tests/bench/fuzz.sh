#!/usr/bin/env bash
# Runs the fuzzers with AddressSanitizer and UndefinedBehaviorSanitizer. Prints for each target the number of inputs,
# inputs per second, and findings. Exits 1 if there is one: the input and the log are then in build/fuzz/findings;
# after the fix, add the input to tests/fuzz/corpus.
# Usage: fuzz.sh [TARGET...]     RUNS=1000000 MINUTES=60 LENGTH=4096 AT_ONCE=2 bound each target and the inputs' bytes
set -euo pipefail
cd "$(dirname "$0")/../.."
export RUNS=${RUNS:-1000000} MINUTES=${MINUTES:-60} LENGTH=${LENGTH:-4096}
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)

scripts/install_packages.sh build test fuzz
scripts/build.sh fuzz -DLOCKBENCH_TESTS=ON -- fuzzers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work
mkdir -p build/fuzz/findings
# Uninstrumented libraries fill containers of instrumented code.
export ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1

fuzz() {
  local target=$1 code=0
  mkdir "$work/$target"
  timeout "$((MINUTES * 60 + 60))" "build/fuzz/fuzz_$target" -runs="$RUNS" -max_total_time="$((MINUTES * 60))" \
    -max_len="$LENGTH" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-" \
    "$work/$target" "tests/fuzz/corpus/$target" >"$work/$target.log" 2>&1 || code=$?
  awk -v target="$target" -v code="$code" '
    /^stat::number_of_executed_units/ { runs = $2 }
    /^stat::average_exec_per_sec/ { speed = $2 }
    END { printf("%-12s %9d runs %7d/s  %s\n", target, runs, speed, code ? "FOUND SOMETHING" : "no finding") }' \
    "$work/$target.log"
  [ "$code" -eq 0 ] || { cp "$work/$target.log" build/fuzz/findings && grep -m1 -E 'ERROR|runtime error|ALARM' "$work/$target.log" || tail -3 "$work/$target.log"; return 1; }
}
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P "${AT_ONCE:-2}" -I{} bash -c 'fuzz {}'
