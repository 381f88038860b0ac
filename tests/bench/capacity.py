#!/usr/bin/env python3
"""Do the answers of `lockbench capacity` hold? For each strategy some searches with seeds of their own, then runs of
60 s at what they found: at the highest rate that a search kept, and at 1.15 times the lowest that one missed. At least
nine of ten must keep the objective there, and miss it there. Where they do not, the next lower kept (higher missed) rate
is run, until one does. Waits only grow with the load, so what holds at a rate holds below it.

Everything is kept in FOLDER, and what is there already is not measured again: stop it, and start it again with the same
arguments. It takes about four hours and wants a machine with nothing else to do. Exit code 1 if an answer did not hold.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

STRATEGIES = ["redis-queue", "postgres-advisory", "zookeeper"]
LOAD = ["--hold", "5ms", "--rtt", "1ms", "--clients", "64"]
OBJECTIVE, BOUND = "acquire.p99<50ms", 0.050
SECONDS, ENOUGH, BEYOND = 60, 0.9, 1.15


def measure(lockbench, arguments, out):
    """The result file that the command writes, unless it is there and complete."""
    if out.exists():
        result = json.loads(out.read_text())
        if not result["interrupted"]:
            return result
    print("measuring", out.name, file=sys.stderr, flush=True)
    command = [lockbench, *arguments, "--quiet", "--out", str(out)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 99):
        sys.exit(f"exit code {done.returncode}: {' '.join(command)}")
    return json.loads(out.read_text())


def p99_at(options, strategy, rate, number):
    """Of a run of 60 s with servers of its own. It ends when all its sections are served, so that none is cut off."""
    sections = str(round(rate * SECONDS))
    arguments = ["run", strategy, *LOAD, "--rate", f"{rate:.6g}", "--iterations", sections, "--duration",
                 f"{2 * SECONDS}s", "--seed", str(1000 + number)]
    out = options.folder / f"{strategy}.at.{rate:.4g}.{number}.json"
    return measure(options.lockbench, arguments, out)["runs"][0]["acquire"]["p99"]


def first_that(options, strategy, rates, holds):
    """The first of the rates at which enough runs hold (or fail), and a line about each that was tried."""
    tried = []
    for rate in rates:
        p99s = [p99_at(options, strategy, rate, number) for number in range(options.runs)]
        agree = sum((p99 < BOUND) == holds for p99 in p99s)
        tried.append(f"{rate:.4g}/s: {agree} of {len(p99s)} runs {'hold' if holds else 'fail'}"
                     f" (median p99 {1000 * statistics.median(p99s):.0f} ms)")
        if agree >= ENOUGH * len(p99s):
            return rate, tried
    return None, tried


def search(options, strategy, number):
    arguments = ["capacity", strategy, *LOAD, "--slo", OBJECTIVE, "--sweep", "off", "--seed", str(1 + 10000 * number)]
    return measure(options.lockbench, arguments, options.folder / f"{strategy}.search.{number}.json")["capacity"][0]


def check(options, strategy):
    """Whether all answers of the searches of a strategy held."""
    found = [search(options, strategy, number) for number in range(options.searches)]
    kept = [one["lowest"] for one in found]
    missed = [math.nan if one["highest"] is None else one["highest"] for one in found]
    print(f"{strategy}: kept", *(f"{rate:.4g}" for rate in kept), "missed", *(f"{rate:.4g}" for rate in missed))
    held = True
    for name, holds, rates in (("kept", True, sorted({rate for rate in kept if rate > 0}, reverse=True)),
                               ("missed", False, sorted({BEYOND * rate for rate in missed if rate > 0}))):
        good, tried = first_that(options, strategy, rates, holds)
        answers = [rate for rate in kept if rate > 0] if holds else [BEYOND * rate for rate in missed if rate > 0]
        right = sum(good is not None and (rate <= good if holds else rate >= good) for rate in answers)
        print(f"  {name}: {right} of {len(answers)} answers hold, {options.searches - len(answers)} searches gave none;",
              "; ".join(tried), flush=True)
        held = held and right == len(answers)
    return held


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("lockbench", nargs="?", default="build/release/lockbench")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES, help="these only")
    parser.add_argument("--searches", type=int, default=10, help="of each strategy")
    parser.add_argument("--runs", type=int, default=10, help="at each rate")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    held = [check(options, strategy) for strategy in options.strategy or STRATEGIES]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
