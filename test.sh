#!/usr/bin/env bash
# Installs missing packages, builds, and runs tests. If a server is missing, its tests fail.
# Usage: test.sh [--all | --only PART[,PART]... | --list] [-- CTEST_ARGUMENT...]
#   without an option  the part quick, which every change must pass
#   --all              every part; a skipped test counts as a failure
#   --only             the named parts
#   --list             lists the parts, their minutes and contents
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
. scripts/phases.sh

# Name, minutes on two cores once installed and built, groups of packages beyond build and run, contents.
table='lint        15  test,lint  clang-format and clang-tidy over all files
quick       6   test       every room, without upper bounds in real time
sanitize    15  test       the quick tests under ASan and UBSan, those with threads under TSan
carriers    5   test       conformance and hostile servers with clients on threads
timing      10  test       upper bounds, rates and ratios in real time
matrix      15  test       every hazard against every strategy
libraries   1   test,full  watching lock libraries of other languages
clients     3   test,full,clients-python,clients-node,clients-java,clients-go  the adapters of lock libraries
browser     1   test,full  the report in Chromium
prometheus  3   test,full  scrapes by Prometheus, recording rules and alerts
cluster     2   test,full  runs over several hosts: MPI in network namespaces
statistics  1   test       error rates of compare and capacity
answers     4   test,full  following what choose answers: its code, settings and conditions
oncall      9   test,full  what a probe and a watch tell on-call engineers, and how soon
site        1   test,full  the pages as a site with search, and their examples for CI and OpenTelemetry
fuzz        8   test,fuzz  each fuzzer for a minute'

parts=()
declare -A minutes packages contents
while read -r part minute package content; do
  parts+=("$part")
  minutes[$part]=$minute packages[$part]=${package//,/ } contents[$part]=$content
done <<<"$table"

usage_error() {
  echo "test.sh: $1" >&2
  exit 1
}

chosen=(quick)
while [ $# -gt 0 ]; do
  case $1 in
    --all)
      chosen=("${parts[@]}")
      # tests/support/main.cc reads it.
      export LOCKBENCH_TESTS_NO_SKIPS=1
      ;;
    --only)
      IFS=, read -ra chosen <<<"${2:-}"
      [ $# -eq 1 ] || shift
      ;;
    --list)
      printf '%-11s %7s  %s\n' part minutes tests
      for part in "${parts[@]}"; do printf '%-11s %7s  %s\n' "$part" "${minutes[$part]}" "${contents[$part]}"; done
      exit
      ;;
    --) break ;;
    *) usage_error "unknown argument $1; allowed: --all, --only PART[,PART]..., --list, -- CTEST_ARGUMENT..." ;;
  esac
  shift
done
ctest_arguments=("${@:2}")

unknown=()
for part in "${chosen[@]}"; do [ -n "$part" ] && [ -n "${minutes[$part]:-}" ] || unknown+=("$part"); done
[ ${#chosen[@]} -gt 0 ] && [ ${#unknown[@]} -eq 0 ] ||
  usage_error "no such part: ${unknown[*]:-(none named)}; allowed: $(sed 's/ /, /g' <<<"${parts[*]}")"

# Usage: build PRESET TARGET. A missing library fails the build; otherwise its tests would be left out unnoticed.
build() {
  phase "$1 build" scripts/build.sh "$1" -DLOCKBENCH_{TESTS,POSTGRES,MYSQL,ETCD,METRICS,MPI}=ON -- "$2"
}

# Tests of these parts pass as inconclusive if they were disturbed.
may_be_inconclusive='^(timing|matrix|cluster|answers|oncall)$'

# Usage: tests PRESET LABEL. Suites mostly wait, so more run in parallel than there are cores.
tests() {
  local shown=()
  [[ ! $2 =~ $may_be_inconclusive ]] || shown=(--verbose)
  ctest "${shown[@]}" --preset "$1" --label-regex "^$2\$" --parallel "$(($(nproc) * 4))" "${ctest_arguments[@]}"
}

# A test without a part would never run.
refuse_tests_without_part() {
  local names
  names=$({ ctest --preset release --show-only --label-exclude "^($(sed 's/ /|/g' <<<"${parts[*]}"))\$" || true; } |
    sed -n 's/^ *Test *#[0-9]*: //p')
  [ -z "$names" ] || usage_error "tests without the label of a part: $(paste -sd' ' <<<"$names")"
}

# A sanitizer's report fails the test.
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan_suppressions.txt"

# ctest runs last, so that its summary ends the output.
run_part() {
  phase "packages for $1" scripts/install_packages.sh build run ${packages[$1]}
  case $1 in
    lint) phase lint scripts/lint.sh --all ;;
    fuzz) phase fuzz env RUNS=-1 MINUTES=1 tests/bench/fuzz.sh ;;
    sanitize)
      build asan sanitized_tests
      phase "asan tests" tests asan asan
      build tsan sanitized_tests
      print_phases
      tests tsan tsan
      ;;
    *)
      # Do not build while tests run: their clients and servers have deadlines, and some check the load.
      if [ "$1" = quick ]; then build release quick_tests; else build release full_tests; fi
      refuse_tests_without_part
      print_phases
      tests release "$1"
      ;;
  esac
}

if [ ${#chosen[@]} -eq 1 ]; then
  run_part "${chosen[0]}"
  exit
fi

mkdir -p build
rows=() failed=0
for part in "${chosen[@]}"; do
  echo "== $part" >&2
  log=build/test_$part.log begin=$EPOCHSECONDS verdict=passed
  LOCKBENCH_PHASES= ./test.sh --only "$part" -- "${ctest_arguments[@]}" 2>&1 | tee "$log" || { verdict=FAILED && failed=$((failed + 1)); }
  summary=$(sed -n '/ tests passed, /p' "$log" | paste -sd\;)
  [[ ! $part =~ $may_be_inconclusive ]] || summary+="; $(sed -n '/inconclusive/p' "$log" | wc -l) inconclusive"
  rows+=("$(printf '%-11s %-7s %7s  %s' "$part" $verdict "$(minutes_since "$begin")" "$summary")")
done
echo "outputs: build/test_PART.log"
printf '%-11s %-7s %7s  %s\n' part verdict min:s ctest
printf '%s\n' "${rows[@]}"
echo "parts: $((${#chosen[@]} - failed)) passed, $failed failed"
exit $((failed > 0))
