#!/usr/bin/env bash
# Installs missing packages, builds lockbench, and runs it with the given arguments; without any, it
# compares the typical strategy of each family.
# Usage: run.sh [--stores STORE,...] [COMMAND] [OPTIONS]
#   --stores  the first argument: only what these stores need is installed and built, without /metrics and MPI; Redis
#             is always among them, as it keeps the counter of `hazards`
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/scripts/phases.sh"
parts_of() { sed -n "s/^$1-\([a-z]*\) .*/\1/p" "$here/packages.txt" | sort -u; }
groups=(build run) options=(-DLOCKBENCH_TESTS=OFF)
case ${1:-} in
  --help) sed -n '2,/^set /{s/^# \?//p}' "$0" && echo ;;
  --stores)
    known=$(parts_of run | grep -vx mpi)
    IFS=, read -ra stores <<<"${2:-}"
    unknown=$(printf '%s\n' "${stores[@]}" | grep -vxF "$known" | paste -sd' ' || true)
    if [ ${#stores[@]} -eq 0 ] || [ -n "$unknown" ]; then
      echo "run.sh: no such store: ${unknown:-(none named)}; allowed: $(paste -sd, <<<"$known" | sed 's/,/, /g')" >&2
      exit 1
    fi
    groups=(build-common run-redis)
    for store in "${stores[@]}"; do groups+=("build-$store" "run-$store"); done
    for part in $(parts_of build); do
      [[ " common ${stores[*]} " == *" $part "* ]] || options+=("-DLOCKBENCH_${part^^}=OFF")
    done
    shift 2
    ;;
esac
phase packages "$here/scripts/install_packages.sh" "${groups[@]}"
phase build "$here/scripts/build.sh" release "${options[@]}" -- lockbench lockbench-supervisor
[ $((EPOCHSECONDS - LOCKBENCH_BEGIN)) -lt 10 ] || print_phases
rm -f "$LOCKBENCH_PHASES"
unset LOCKBENCH_PHASES LOCKBENCH_BEGIN
[ $# -gt 0 ] || set -- overview
exec "$here/build/release/lockbench" "$@"
