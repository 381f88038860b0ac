#!/usr/bin/env bash
# Speed of the strategy "zookeeper" compared with Apache Curator's InterProcessMutex: one ZooKeeper, runs
# in turn, once with a key per client and once with all on one key. Each line is one round: sections
# per second of both, and their ratio; the last line is the median.
# Needs the packages libcurator-recipes-java and default-jdk-headless, and those of the private ZooKeeper.
# Usage: tests/bench/zookeeper.sh [BUILD_DIR [ROUNDS [CLIENTS]]]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${1:-build/release}
rounds=${2:-5}
clients=${3:-8}
warmup=5
seconds=5

work=$(mktemp -d)
server=
stop() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap stop EXIT

jars=/usr/share/java
port=$((20000 + RANDOM % 10000))
printf 'dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\ntickTime=100\nadmin.enableServer=false\nmaxClientCnxns=0\nmaxSessionTimeout=60000\n' \
  "$work/data" "$port" > "$work/zoo.cfg"
mkdir "$work/data"
java -XX:+UseSerialGC -Xms64m -Xmx512m -cp "$jars/zookeeper.jar:$jars/slf4j-nop.jar" \
  org.apache.zookeeper.server.quorum.QuorumPeerMain "$work/zoo.cfg" > "$work/log" 2>&1 &
server=$!
for _ in $(seq 300); do
  (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> "$work/last" && break
  sleep 0.1
done

peer_path="$work:$jars/curator-recipes.jar:$jars/curator-framework.jar:$jars/curator-client.jar:$jars/zookeeper.jar:$jars/guava.jar:$jars/slf4j-nop.jar"
javac -cp "$peer_path" -d "$work" "$here/CuratorBench.java"

curator() { java -cp "$peer_path" CuratorBench "127.0.0.1:$port" "$clients" "$1" "$warmup" "$seconds"; }
lockbench() {
  "$build/lockbench" run zookeeper --load reacquire --zookeeper "127.0.0.1:$port" --clients "$clients" --keys "$1" \
    --warmup "${warmup}s" --duration "${seconds}s" --quiet --out "$work/result.json" > "$work/table"
  python3 -c 'import json,sys; print(round(json.load(open(sys.argv[1]))["runs"][0]["sections_per_second"]))' \
    "$work/result.json"
}

# Warm up the server's JVM.
curator per-client > "$work/warm" && lockbench per-client > "$work/warm"

for keys in per-client 1; do
  echo "$clients clients, keys: $keys"
  : > "$work/ratios"
  for round in $(seq "$rounds"); do
    # Alternate the order.
    if [ $((round % 2)) = 0 ]; then ours=$(lockbench "$keys"); fi
    theirs=$(curator "$keys")
    if [ $((round % 2)) = 1 ]; then ours=$(lockbench "$keys"); fi
    awk -v round="$round" -v ours="$ours" -v theirs="$theirs" -v out="$work/ratios" 'BEGIN {
      printf "  round %d: zookeeper %d/s, Curator %d/s: %.2f\n", round, ours, theirs, ours / theirs
      print ours / theirs > out ".last" }'
    cat "$work/ratios.last" >> "$work/ratios"
  done
  sort -g "$work/ratios" | awk '{ all[NR] = $1 } END { printf "  median %.2f\n", all[int((NR + 1) / 2)] }'
done
