#!/usr/bin/env bash
# Cost of TLS: one strategy of each store on private servers, without and with --tls in turn, for a single client
# and for eight on a saturated lock. Prints the medians of all rounds as a Markdown table, for docs/results.md: each
# cell is "without → with". Needs a build, python3 and an otherwise idle machine.
# Usage: tls.sh [STRATEGY...]     ROUNDS=5 SECONDS_EACH=3 LOCKBENCH=build/release/lockbench change it
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
lockbench=${LOCKBENCH:-build/release/lockbench}
strategies=("$@")
[ $# -gt 0 ] || strategies=(redis-set-nx-lua redis-queue memcached-add-cas zookeeper etcd postgres-advisory)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() { # name, further options
  "$lockbench" run "${strategies[@]}" --load alone,saturated --duration "${seconds}s" --quiet --format json \
    --out "$work/$1.json" "${@:2}" >/dev/null
}
for round in $(seq "$rounds"); do
  # Alternate the order, so that drift of the machine affects both alike.
  if ((round % 2)); then
    measure "plain-$round"
    measure "tls-$round" --tls
  else
    measure "tls-$round" --tls
    measure "plain-$round"
  fi
  echo "round $round of $rounds is over" >&2
done

python3 - "$work" "${strategies[@]}" <<'PYTHON'
import glob, json, statistics, sys

work, strategies = sys.argv[1], sys.argv[2:]

def runs(way):
    for path in glob.glob(f"{work}/{way}-*.json"):
        with open(path) as file:
            yield from json.load(file)["runs"]

def median(way, strategy, load, far, figure):
    values = [figure(run) for run in runs(way)
              if run["strategy"] == strategy and run["load"]["name"] == load
              and (run["load"]["rtt_seconds"] > 0) == far]
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None

def micro(value):
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e6:.3g} µs" if value < 1e-3 else f"{value * 1e3:.3g} ms"

def count(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"

# The proxies that add the network's delay count bytes.
columns = [
    ("alone: acquire p50", "alone", False, lambda run: run["acquire"]["p50"], micro),
    ("cmds/sect.", "alone", False, lambda run: run["commands_per_section"], count),
    ("bytes/sect.", "alone", True, lambda run: run["bytes_per_section"], count),
    ("server CPU/sect.", "alone", False, lambda run: run["server_cpu_seconds_per_section"], micro),
    ("saturated: sections/s", "saturated", False, lambda run: run["sections_per_second"], count),
    ("longest wait", "saturated", False, lambda run: run["fairness"]["longest_wait_seconds"], micro),
]
print("| strategy | " + " | ".join(column[0] for column in columns) + " |")
print("|---|" + "---:|" * len(columns))
for strategy in strategies:
    cells = []
    for _, load, far, figure, shown in columns:
        both = [median(way, strategy, load, far, figure) for way in ("plain", "tls")]
        cells.append(" → ".join("–" if value is None else shown(value) for value in both))
    print(f"| {strategy} | " + " | ".join(cells) + " |")
PYTHON
