#!/usr/bin/env bash
# Configures and builds a preset. Usage: build.sh PRESET [CMake options] [-- targets]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -gt 0 ] && shift
targets=()
[ $# -gt 0 ] && targets=(--target "$@")

if ! [ -e "build/$preset/build.ninja" ]; then
  # CPU minutes with an empty ccache: the program alone, and with its tests.
  work=8
  [[ " ${options[*]} " == *LOCKBENCH_TESTS=OFF* ]] || work=18
  cores=$(nproc)
  echo "building the $preset preset for the first time: up to $(((work + cores - 1) / cores)) minutes on $cores cores" >&2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Ninja reruns CMake when a CMake file changes; this covers other options and newly installed libraries.
stamp=build/$preset/configured
wanted="${options[*]} $(stat -c %Y /var/lib/dpkg/status 2>/dev/null || true)"
# What earlier options left out comes back unless these leave it out again.
configure() {
  if [ -e "build/$preset/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  cmake --preset "$preset" -ULOCKBENCH_{POSTGRES,MYSQL,ETCD,METRICS,MPI} "${options[@]}" && echo "$wanted" >"$stamp"
}
# On a terminal ninja shows its progress; elsewhere its output is shown only on failure, without the commands.
build() {
  if ! [ -t 2 ]; then
    cmake --build --preset "$preset" "${targets[@]}" >>"$log" 2>&1
  elif ! ninja -C "build/$preset" -n "${targets[@]:1}" | grep -q 'no work to do'; then
    cmake --build --preset "$preset" "${targets[@]}" >&2
  fi
}
if ! configure >"$log" 2>&1 || ! build; then
  grep -v '/ccache ' "$log" >&2
  exit 1
fi
