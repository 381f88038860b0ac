#!/usr/bin/env bash
# Repeats the steps of Containerfile without a container engine, each stage in a bare Debian of its own, and runs what
# comes out: the program on a private Redis, the manual, and the files of the completions. Takes what is committed.
# Needs root, debootstrap, the network, and 4 GB in TMPDIR; takes a quarter of an hour. Usage: tests/bench/container.sh
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
[ "$(id -u)" -eq 0 ] || { echo "container.sh: chroot needs root" >&2; exit 1; }
source=$PWD folder=$(mktemp -d)
chmod 755 "$folder"

finish() {
  for place in "$folder"/stage-*/{proc,dev/shm}; do ! mountpoint -q "$place" || umount "$place"; done
  rm -rf --one-file-system "$folder"
}
trap finish EXIT

root='' directory=/ stages=0
declare -A roots
inside() {
  chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    sh -c 'cd "$1" && shift && exec "$@"' sh "$directory" "$@"
}

# Usage: from debian:RELEASE [AS NAME]
from() {
  local base=$folder/base-${1#debian:}
  [ -d "$base" ] || debootstrap --variant=minbase "${1#debian:}" "$base" >&2
  stages=$((stages + 1))
  root=$folder/stage-$stages directory=/
  cp -a "$base" "$root"
  cp /etc/resolv.conf "$root/etc/"
  # As in Debian's images: a package starts no service.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  mount -t proc proc "$root/proc"
  mkdir -p "$root/dev/shm"
  mount -t tmpfs tmpfs "$root/dev/shm"
  roots[${3:-$stages}]=$root
}

# Usage: copy [--from=STAGE] SOURCE TARGET
copy() {
  case $1 in
    --from=*) cp -a "${roots[${1#--from=}]}$2" "$root$3" ;;
    .) git clone -q "$source" "$root$2" && chown -R root: "$root$2" ;;
  esac
}

while read -r instruction arguments; do
  case $instruction in
    '' | '#'*) ;;
    FROM) echo "$instruction $arguments" >&2 && from $arguments </dev/null ;;
    COPY) echo "$instruction $arguments" >&2 && copy $arguments </dev/null ;;
    RUN) echo "$instruction $arguments" >&2 && inside sh -c "$arguments" </dev/null >&2 ;;
    WORKDIR) directory=$arguments && mkdir -p "$root$directory" ;;
    ENTRYPOINT) read -ra entrypoint < <(tr -d '[],"' <<<"$arguments") ;;
    CMD) ;;
    *) echo "container.sh: cannot repeat $instruction" >&2 && exit 1 ;;
  esac
done <Containerfile

inside "${entrypoint[@]}" --version
inside "${entrypoint[@]}" doctor
inside "${entrypoint[@]}" run redis-queue postgres-advisory zookeeper etcd memcached-add --duration 1s
for file in man/man1/lockbench-run.1 bash-completion/completions/lockbench lockbench/dashboards/prometheus/alerts.yml; do
  inside test -e "/usr/share/$file"
done
echo "the steps of Containerfile make a lockbench that runs"
