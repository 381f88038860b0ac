#!/usr/bin/env python3
"""gates.py LOCKBENCH [TIMES]: how often the gates of the README come to the right answer, 20 times by default.

Plays the README's example with thresholds, which must pass; its gate for CI with two equal configurations, which must
pass; and with a second one whose round trips make each handoff about a fifth longer, which must fail. Prints a row for
each, with the exit codes. Needs half an hour on an otherwise idle machine."""
import collections
import os
import re
import subprocess
import sys
import tempfile

EXAMPLE = ["run", "redis-queue", "postgres-advisory", "--clients", "32", "--rate", "150", "--hold", "exp(2ms)",
           "--threshold", "acquire.p99<20ms", "--threshold", "audit.lost_updates==0"]
GATE = ["--repeat", "10", "--fail-on", "handoff.p50>+10%"]


def configuration(folder, name, rtt):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'strategies = ["redis-queue"]\nclients = 8\nhold = "1ms"\nduration = "1s"\nrtt = "{rtt}"\n')
    return path


def main():
    lockbench, times = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as folder:
        before, same, slower = (configuration(folder, name, rtt) for name, rtt in
                                (("before.toml", "1ms"), ("same.toml", "1ms"), ("slower.toml", "1250us")))
        rows = {"the example with thresholds": (EXAMPLE + ["--out", os.path.join(folder, "r.json")], 0),
                "the gate, equal": (["compare", "--run", before, same, *GATE], 0),
                "the gate, a handoff a fifth longer": (["compare", "--run", before, slower, *GATE], 99)}
        codes = {name: collections.Counter() for name in rows}
        changes = []
        for _ in range(times):
            for name, (command, wanted) in rows.items():
                ended = subprocess.run([lockbench, *command, "--quiet"], cwd=folder, capture_output=True, text=True,
                                       timeout=600, check=False)
                codes[name][ended.returncode] += 1
                if ended.returncode != wanted:
                    print(f"{name}: exit {ended.returncode}\n{ended.stdout[-3000:]}{ended.stderr[-1000:]}", flush=True)
                if name == "the gate, a handoff a fifth longer":
                    changes += re.findall(r"handoff\.p50\S* .*?([+−-][\d.]+ ?%)", ended.stdout)[:1]
            print({name: dict(count) for name, count in codes.items()}, file=sys.stderr, flush=True)
    print("| gate | right | exit codes |\n|---|---:|---|")
    for name, (_, wanted) in rows.items():
        seen = ", ".join(f"{code}: {count}" for code, count in sorted(codes[name].items()))
        print(f"| {name} | {codes[name][wanted]} of {times} | {seen} |")
    print("longer by", " ".join(changes))


if __name__ == "__main__":
    main()
