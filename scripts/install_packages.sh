#!/usr/bin/env bash
# Installs what is missing of the named groups of packages.txt. Usage: install_packages.sh GROUP...
set -euo pipefail
list="$(dirname "$0")/../packages.txt"
missing=()
for group in "$@"; do
  while read -r package; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done < <(awk -v group="$group" '$1 == group { print $2 }' "$list")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "these packages are missing, and installing them needs root: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${missing[*]}" >&2
# Servers are started by lockbench itself, privately: installing one must not start a system service.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  rm -f "$log"
  exit 1
fi
rm -f "$log"
