#!/usr/bin/env bash
# Installs the missing packages of the given groups of packages.txt: "run" stands for "run-redis" and the like, too.
# As root, also creates the account for private servers. Usage: install_packages.sh GROUP...
set -euo pipefail
list="$(dirname "$0")/../packages.txt"

# The account owns nothing else. Without root, servers run as the caller.
if [ "$(id -u)" -eq 0 ] && ! id -u lockbench >/dev/null 2>&1; then
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin lockbench
fi

# Debian's npm conflicts with a newer node, which has its own npm.
is_there() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed' && return
  [[ $1 =~ ^(nodejs|npm)$ ]] && command -v node >/dev/null && command -v npm >/dev/null
}

missing=()
for group in "$@"; do
  while read -r package; do
    is_there "$package" || missing+=("$package")
  done < <(awk -v group="$group" '$1 == group || index($1, group "-") == 1 { print $2 }' "$list")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "these packages are missing, and installing them needs root: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${missing[*]}" >&2

# lockbench starts private servers itself, so installing one must not start a system service. The policy file is
# valid while this process lives; if the process is killed, the next program that asks the policy removes it.
policy=${LOCKBENCH_POLICY:-/usr/sbin/policy-rc.d}
mark='# By install_packages.sh of lockbench.'
begin_of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
if [ ! -e "$policy" ] || grep -qxF "$mark" "$policy"; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  "${as_root[@]}" tee "$policy" >/dev/null <<END
#!/bin/sh
$mark
begin=\$(sed 's/.*) //' /proc/$$/stat 2>/dev/null | cut -d' ' -f20)
[ "\$begin" = "$(begin_of $$)" ] && exit 101
rm -f "\$0"
END
  "${as_root[@]}" chmod +x "$policy"
fi
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  rm -f "$log"
  exit 1
fi
rm -f "$log"
