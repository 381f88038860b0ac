#!/usr/bin/env python3
"""last_second.py LOCKBENCH [STRATEGY...]: whether the last second of a run equals the others.

Prints a table: the acquire p99 of each measured second, in milliseconds, and how many connections
lockbench closed before the end of the measured part, for an open and a closed loop."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

LOADS = {
    "open": ["--clients", "100", "--keys", "20", "--rate", "400", "--hold", "lognormal(8ms,15ms)"],
    "closed": ["--clients", "32", "--keys", "4", "--hold", "2ms"],
}
SECONDS = 5


def sockets(pid):
    """The number of open sockets of the process."""
    count = 0
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                count += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
            except OSError:
                pass
    except OSError:
        return None
    return count


def measure(lockbench, strategy, load):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "r.json")
        process = subprocess.Popen(
            [lockbench, "run", strategy, *LOADS[load], "--duration", f"{SECONDS}s", "--warmup", "1s",
             "--out", out, "--quiet", "--events", "-"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        phase = ["connecting"]

        def follow():
            for line in process.stdout:
                phase[0] = json.loads(line).get("phase", phase[0])

        follower = threading.Thread(target=follow)
        follower.start()
        seen = []
        while process.poll() is None:
            count = sockets(process.pid)
            if count is not None and phase[0] == "measuring":
                seen.append(count)
            time.sleep(0.02)
        follower.join()
        # The last samples before "draining" is read may be of the time after it.
        seen = seen[:-1]
        with open(out, encoding="utf-8") as file:
            run = json.load(file)["runs"][0]
    each = [point["acquire_p99"] for point in run["series"] if not point["warmup"]]
    closed = max(seen) - min(seen) if seen else None
    return each, closed, run["generator"]["valid"]


def main():
    lockbench, strategies = sys.argv[1], sys.argv[2:]
    if not strategies:
        listed = json.loads(subprocess.check_output([lockbench, "list", "--format", "json"]))
        strategies = [one["name"] for one in listed if one["backend"] != "local"]
    seconds = " | ".join(f"{n + 1}" for n in range(SECONDS))
    print(f"| strategy | loop | {seconds} | closed early | run |")
    print("|---" * (SECONDS + 4) + "|")
    for strategy in strategies:
        for load in LOADS:
            each, closed, valid = measure(lockbench, strategy, load)
            p99 = " | ".join("–" if p is None else f"{1e3 * p:.1f}" for p in each)
            print(f"| {strategy} | {load} | {p99} | {closed} | {'valid' if valid else 'invalid'} |",
                  flush=True)


if __name__ == "__main__":
    main()
