#!/usr/bin/env bash
# Cost of splitting a run over ranks: sections per second of the same clients in one process and in several ranks
# on this host, in turn. Needs an idle machine and mpirun. Usage: tests/bench/cluster.sh [RANKS [ROUNDS [STRATEGY]]]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
ranks=${1:-2} rounds=${2:-10} strategy=${3:-redis-queue}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
lockbench=build/release/lockbench
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# The counter is in Redis for one process, too, as it must be for ranks.
run() { # FILE COMMAND...
  local file=$1
  shift
  "$@" "$lockbench" run "$strategy" --resource redis --clients 16 --keys 16 --hold 0 --duration 3s --quiet \
    --contended-grants 1 --out "$file" >/dev/null
}
for ((round = 1; round <= rounds; ++round)); do
  run "$folder/one.$round.json" env
  run "$folder/ranks.$round.json" mpirun --oversubscribe --bind-to none -np "$ranks"
done
python3 - "$folder" "$rounds" "$ranks" <<'EOF'
import json, statistics, sys
folder, rounds, ranks = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rate = lambda name, i: json.load(open(f"{folder}/{name}.{i}.json"))["runs"][0]["sections_per_second"]
one = [rate("one", i) for i in range(1, rounds + 1)]
several = [rate("ranks", i) for i in range(1, rounds + 1)]
costs = sorted(1 - b / a for a, b in zip(one, several))
print(f"one process {statistics.median(one):.0f}/s, {ranks} ranks {statistics.median(several):.0f}/s, "
      f"cost {100 * statistics.median(costs):.1f} % (of pairs: {100 * costs[0]:.1f} to {100 * costs[-1]:.1f} %)")
EOF
