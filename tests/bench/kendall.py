#!/usr/bin/env python3
"""How similarly do two results rank their common strategies, under each common load?

Usage: kendall.py A.json B.json
Prints for each load Kendall's tau-b (The treatment of ties in ranking problems, 1945) of the medians over the
repetitions: 1 if the orders agree, -1 if they are reversed. Medians that differ by less than a tenth are a tie.
"""
import itertools
import json
import math
import statistics
import sys

TENTH = 1.1
FEWEST_STRATEGIES = 3


def of(run, part, name):
    """None if it was not measured. A condensed run lacks the values of an empty run."""
    return run.get(part, {}).get(name)


def figure(run, load):
    """The figure that ranks under the load; None if it was not measured."""
    if load == "alone":
        acquire = of(run, "acquire", "p50")
        return None if acquire is None else acquire + (of(run, "release", "p50") or 0)
    return of(run, "acquire", "p99") if load == "demand" else of(run, "fairness", "longest_wait_seconds")


def load_of(run):
    return of(run, "load", "name") or ""


def deciding_runs(runs, load):
    """The runs at the lowest rate of a demand, or at the longest round trip of another load."""
    runs = [run for run in runs if load_of(run) == load]
    if load == "demand":
        lowest = min(of(run, "load", "rate") for run in runs)
        return [run for run in runs if of(run, "load", "rate") == lowest]
    longest = max(of(run, "load", "rtt_seconds") or 0 for run in runs)
    return [run for run in runs if (of(run, "load", "rtt_seconds") or 0) == longest]


def medians(runs, load):
    values = {}
    for run in deciding_runs(runs, load):
        value = figure(run, load)
        # Count a wait of 0 as a nanosecond.
        if value is not None:
            values.setdefault(run["strategy"], []).append(max(value, 1e-9))
    return {strategy: statistics.median(its) for strategy, its in values.items()}


def sign(x, y):
    return 0 if max(x, y) < TENTH * min(x, y) else math.copysign(1, x - y)


def tau(a, b):
    """Kendall's tau-b of two lists; None if all items of a list are tied."""
    agreed = apart_in_a = apart_in_b = 0
    for (a1, b1), (a2, b2) in itertools.combinations(zip(a, b), 2):
        in_a, in_b = sign(a1, a2), sign(b1, b2)
        agreed += in_a * in_b
        apart_in_a += abs(in_a)
        apart_in_b += abs(in_b)
    return agreed / math.sqrt(apart_in_a * apart_in_b) if apart_in_a and apart_in_b else None


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    results = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            results.append(json.load(file)["runs"])
    loads = [{load_of(run) for run in runs} for runs in results]
    for load in sorted(loads[0] & loads[1]):
        a, b = (medians(runs, load) for runs in results)
        both = sorted(a.keys() & b.keys())
        found = tau([a[one] for one in both], [b[one] for one in both])
        if len(both) >= FEWEST_STRATEGIES and found is not None:
            print(f"{load or 'this load'}: {found:.2f} of {len(both)} strategies")


if __name__ == "__main__":
    main()
