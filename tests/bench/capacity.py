#!/usr/bin/env python3
"""Are the answers of `lockbench capacity` right? Makes ten searches for each strategy, and after each a run of 60 s at the
kept rate and one at 1.15 times the missed rate. At least nine of ten must keep the objective at the former, and miss it
at the latter. A search without an answer counts as wrong.

All results are kept in FOLDER and not measured again, so it can be stopped and restarted with the same arguments. Takes
three and a half hours and needs an otherwise idle machine. Exit code 1 if too few answers were right.
"""
import argparse
import json
import pathlib
import subprocess
import sys

STRATEGIES = ["redis-queue", "postgres-advisory", "zookeeper"]
LOAD = ["--hold", "5ms", "--rtt", "1ms", "--clients", "64"]
OBJECTIVE, BOUND = "acquire.p99<50ms", 0.050
SEARCHES, ENOUGH, SECONDS, BEYOND = 10, 9, 60, 1.15


def measure(lockbench, arguments, out):
    """The result file that the command writes, unless it is there and complete."""
    if out.exists():
        result = json.loads(out.read_text())
        if not result["interrupted"]:
            return result
    command = [lockbench, *arguments, "--quiet", "--out", str(out)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 5, 99):
        sys.exit(f"exit code {done.returncode}: {' '.join(command)}")
    return json.loads(out.read_text())


def p99_at(options, strategy, rate, number, name):
    """Figures of a run of 60 s with its own servers. It ends when all sections are served, so that none is cut off."""
    arguments = ["run", strategy, *LOAD, "--rate", f"{rate:.6g}", "--iterations", str(round(rate * SECONDS)),
                 "--duration", f"{2 * SECONDS}s", "--seed", str(1000 + number)]
    out = options.folder / f"{strategy}.{name}.{number}.json"
    return measure(options.lockbench, arguments, out)["runs"][0]["acquire"]["p99"]


def check(options, strategy):
    """Whether enough answers for a strategy were right."""
    kept_held = missed_failed = 0
    for number in range(SEARCHES):
        arguments = ["capacity", strategy, *LOAD, "--slo", OBJECTIVE, "--seed", str(1 + 10000 * number)]
        found = measure(options.lockbench, arguments, options.folder / f"{strategy}.search.{number}.json")["capacity"][0]
        kept, missed = found["lowest"], found["highest"]
        line = f"{strategy} {number}:"
        if kept:
            p99 = p99_at(options, strategy, kept, number, "kept")
            kept_held += p99 < BOUND
            line += f" kept {kept:.4g}/s: p99 {1000 * p99:.1f} ms;"
        if missed:
            p99 = p99_at(options, strategy, BEYOND * missed, number, "missed")
            missed_failed += p99 >= BOUND
            line += f" missed {missed:.4g}/s: at {BEYOND} times that {1000 * p99:.1f} ms"
        print(line, flush=True)
    print(f"{strategy}: {kept_held} of {SEARCHES} kept rates hold, {missed_failed} of {SEARCHES} missed rates fail", flush=True)
    return min(kept_held, missed_failed) >= ENOUGH


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("lockbench", nargs="?", default="build/release/lockbench")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES, help="these only")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    held = [check(options, strategy) for strategy in options.strategy or STRATEGIES]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
