#!/usr/bin/env python3
"""How often does `lockbench compare` raise a false alarm, and how often does its gate find a real regression?

Usage: compare_splits.py LOCKBENCH SAME.json FAST.json SLOW.json     of redis-queue, SLOW's p99 20 % above FAST's
Deals recorded repetitions at random to two results and compares them. Fails if more than 15 of 200 pairs without
a difference raise an alarm, or if fewer than 80 % of the regressions are found.
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS, MOST_ALARMS, REGRESSIONS, LEAST_FOUND = 200, 15, 50, 0.8
EACH, FEW = 10, 5  # repetitions on each side
SHOWN = {"better", "worse", "higher", "lower"}
GATE = "acquire.p99>+10%"


def load(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def without_invalid(result):
    runs = [run for run in result["runs"] if run["generator"]["valid"]]
    if len(runs) < 2 * EACH:
        sys.exit(f"{len(runs)} valid runs of {2 * EACH}")
    return {**result, "runs": runs}


def repetitions(result):
    return sorted({run["repetition"] for run in result["runs"]})


def part(result, chosen):
    return {**result, "runs": [run for run in result["runs"] if run["repetition"] in chosen]}


def compared(program, a, b, gated):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "a.json", Path(folder) / "b.json"]
        for file, result in zip(files, (a, b)):
            file.write_text(json.dumps(result), encoding="utf-8")
        gate = ["--fail-on", GATE, "--force"] if gated else []
        done = subprocess.run([program, "compare", *files, "--format", "json", *gate], stdout=subprocess.PIPE)
        if done.returncode not in (0, 99):
            sys.exit(1)
        return json.loads(done.stdout)


def misses_its_gate(comparison):
    return any(gate["outcome"] == "regression" for gate in comparison["gates"])


def alarms(comparison):
    return misses_its_gate(comparison) or any(one["finding"] in SHOWN for one in comparison["differences"])


def alarms_are_few(program, same, each, gated):
    order, count = repetitions(same), 0
    for _ in range(PAIRS):
        random.shuffle(order)
        a, b = part(same, order[:each]), part(same, order[each:2 * each])
        count += alarms(compared(program, a, b, gated))
    print(f"no difference, {each} and {each} repetitions{', with a gate' if gated else ''}: "
          f"{count} of {PAIRS} raise an alarm")
    return count <= MOST_ALARMS


def regressions_are_found(program, fast, slow):
    count = 0
    for _ in range(REGRESSIONS):
        a, b = (part(result, random.sample(repetitions(result), EACH)) for result in (fast, slow))
        count += misses_its_gate(compared(program, a, b, True))
    print(f"{EACH} and {EACH} repetitions: the gate finds the regression in {count} of {REGRESSIONS}")
    return count >= LEAST_FOUND * REGRESSIONS


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__.strip())
    random.seed(1)
    program, (same, fast, slow) = sys.argv[1], map(load, sys.argv[2:])
    # A gate refuses FEW repetitions.
    held = [alarms_are_few(program, same, *how) for how in ((EACH, False), (EACH, True), (FEW, False))]
    held.append(regressions_are_found(program, without_invalid(fast), without_invalid(slow)))
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
