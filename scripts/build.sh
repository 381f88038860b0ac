#!/usr/bin/env bash
# Configures and builds a preset, quietly unless it fails. Usage: build.sh PRESET [CMake options] [-- targets]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -gt 0 ] && shift
targets=()
[ $# -gt 0 ] && targets=(--target "$@")

log=$(mktemp)
trap 'rm -f "$log"' EXIT
first=
[ -e "build/$preset/build.ninja" ] || first=yes
[ -z "$first" ] || echo "building the $preset preset: this takes a few minutes the first time" >&2
if ! { cmake --preset "$preset" "${options[@]}" && cmake --build --preset "$preset" "${targets[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
