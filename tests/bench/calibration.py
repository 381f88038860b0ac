#!/usr/bin/env python3
"""How well does `lockbench simulate --calibrate` predict this machine? Measures each strategy that can be simulated under
the loads `alone`, `demand` and `saturated`, five times, simulates the latter two with the times of the first, and prints the
table of docs/simulation.md: throughput, acquire p50 and p99, predicted and measured. A prediction is right if it is within
15 % of the median of the runs, or between the least and the most of them.

Keeps all results in FOLDER and does not measure again, so it can be stopped and restarted. Takes an hour and needs an
otherwise idle machine. Exit code 1 if a prediction is wrong."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

RUNS, SECONDS, SIMULATED = 5, 5, "60s"
TOLERANCE = 0.15
FIGURES = {
    "sections/s": (lambda run: run["sections_per_second"],
                   lambda row: row["sections"] / row["simulated_seconds"]),
    "p50": (lambda run: run["acquire"]["p50"], lambda row: row["acquire"]["p50"]),
    "p99": (lambda run: run["acquire"]["p99"], lambda row: row["acquire"]["p99"]),
}


def result_of(lockbench, arguments, out):
    """The result file that the command writes, unless it is there and complete."""
    if out.exists():
        result = json.loads(out.read_text())
        if not result["interrupted"]:
            return result
    command = [lockbench, *arguments, "--quiet", "--out", str(out)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    # 2: some lock was not granted in a run. 3: some lock is known to break exclusion.
    if done.returncode not in (0, 2, 3):
        sys.exit(f"exit code {done.returncode}: {' '.join(command)}")
    return json.loads(out.read_text())


def named(value):
    """In µs, ms, or as a rate."""
    if value >= 1:
        return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def predict(options, strategy, load, alone):
    """The row of a simulation of this load."""
    arguments = ["simulate", strategy, "--calibrate", str(alone), "--clients", str(load["clients"]),
                 "--hold", f"{load['hold_seconds'] * 1e6:.0f}us", "--duration", SIMULATED]
    if load["rate"]:
        arguments += ["--rate", str(load["rate"])]
    name = f"{strategy}.{load['name']}.{load['rate'] or 'closed'}.json"
    return result_of(options.lockbench, arguments, options.folder / name)["simulation"][0]


def cell(figure, runs, row):
    """Predicted and measured, and whether that is right."""
    of_run, of_row = FIGURES[figure]
    predicted = of_row(row)
    measured = [value for value in map(of_run, runs) if value is not None]
    if not measured or predicted is None:
        return "–", True
    middle = statistics.median(measured)
    right = abs(predicted / middle - 1) <= TOLERANCE or min(measured) <= predicted <= max(measured)
    unit = "/s" if figure == "sections/s" else ""
    return f"{named(predicted)}{unit} / {named(middle)}{unit}{'' if right else ' ✗'}", right


def loads_of(runs):
    """The points of a load, by their rates."""
    points = {}
    for run in runs:
        points.setdefault((run["load"]["name"], run["load"]["rate"]), []).append(run)
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("lockbench", nargs="?", default="build/release/lockbench")
    parser.add_argument("--strategy", action="append", help="these only")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    strategies = options.strategy or ["redis-*", "redlock*", "memcached-*"]
    common = ["run", *strategies, "--repeat", str(RUNS), "--duration", f"{SECONDS}s", "--allow-no-grants"]
    alone = options.folder / "alone.json"
    result_of(options.lockbench, [*common, "--load", "alone", "--rtt", "0s"], alone)
    loaded = result_of(options.lockbench, [*common, "--load", "demand,saturated"], options.folder / "loads.json")
    # What cannot be simulated, such as updates without a lock.
    tried = result_of(options.lockbench, ["simulate", *strategies, "--calibrate", str(alone), "--duration", "1s"],
                      options.folder / "tried.json")
    rows, wrong = [], 0
    for strategy in (row["strategy"] for row in tried["simulation"]):
        for (name, rate), runs in loads_of(run for run in loaded["runs"] if run["strategy"] == strategy).items():
            row = predict(options, strategy, runs[0]["load"], alone)
            cells = [cell(figure, runs, row) for figure in FIGURES]
            wrong += sum(not right for _, right in cells)
            load = name if rate is None else f"{name} at {rate:.3g}/s"
            rows.append(f"| `{strategy}` | {load} | {' | '.join(text for text, _ in cells)} |")
    print("| strategy | load | throughput | acquire p50 | acquire p99 |\n|---|---|---:|---:|---:|")
    print("\n".join(rows))
    print(f"\nPredicted / measured; ✗: farther than {TOLERANCE:.0%} from the median of {RUNS} runs, and outside of them: "
          f"{wrong} of {len(rows) * len(FIGURES)}.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
