#!/usr/bin/env python3
"""Condenses a result file to about a tenth: the parts that tables and readers need, still readable by lockbench.

Usage: condense.py LOCKBENCH FILE >SMALL.json

Leaves out histograms, series, timelines and command times. Repetitions after the first keep only the fields that rank
and judge the lock, evidence of plays only its reason and the fields in tables. Numbers keep four digits.

For readable diffs there is one line for each member of the document and for each element of its lists. The document is
marked `compact`: its runs lack the fields that are as in an empty run.
"""
import json
import subprocess
import sys
import tempfile

BULK = {"buckets", "series", "timeline"}
# The fields of a play's evidence that tables show.
TELLING = {"reason", "recovery_seconds", "unstable"}
# The fields that rank and judge a lock.
RANKING = {"strategy", "backend", "repetition", "load", "duration_seconds", "sections", "sections_per_second",
           "outcomes", "leases_lost", "acquire", "release", "awaited_releases", "direct_handoffs", "overtakings",
           "wait", "attempts_per_grant", "commands_per_section", "fairness", "audit", "generator"}


def empty_run(lockbench):
    """A run without any data, as lockbench reads and writes it."""
    nothing = {"schema": "lockbench.result/2", "id": "x", "started_at": "", "interrupted": False,
               "lockbench": {"version": "", "commit": "", "build_type": ""},
               "environment": {"cpu": "", "cores": 0, "kernel": "", "memory_bytes": 0, "servers": {}},
               "workload": {}, "skipped": [], "runs": [{}], "compact": True}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(nothing, file)
        file.flush()
        return json.loads(subprocess.run([lockbench, "show", file.name, "--format", "json"], check=True,
                                         stdout=subprocess.PIPE).stdout)["runs"][0]


def thinned(value):
    """Without bulky members, and with numbers of four digits."""
    if isinstance(value, float):
        return float(f"{value:.3e}")
    if isinstance(value, list):
        return [thinned(one) for one in value]
    if isinstance(value, dict):
        return {name: [] if name in BULK and isinstance(one, list) else thinned(one) for name, one in value.items()}
    return value


def without(empty, value):
    """Without the members that are the same in the empty object."""
    kept = {}
    for name, one in value.items():
        if name in empty and empty[name] == one:
            continue
        both = isinstance(one, dict) and isinstance(empty.get(name), dict)
        kept[name] = without(empty[name], one) if both else one
    return kept


def condensed_run(run, empty):
    left_out = {"commands", "schedule_lag", "turnaround"}
    run = {name: one for name, one in run.items() if name not in left_out}
    if run.get("repetition", 1) > 1:
        run = {name: one for name, one in run.items() if name in RANKING}
    if "fairness" in run:
        run["fairness"] = {name: one for name, one in run["fairness"].items() if name != "per_client"}
    return without(empty, run)


def condensed(document, empty):
    for play in document.get("hazards", []):
        play["evidence"] = {name: one for name, one in play["evidence"].items() if name in TELLING}
    document = dict(thinned(document), workload=document["workload"])
    document["runs"] = [condensed_run(run, empty) for run in document["runs"]]
    return dict(document, compact=True)


def text_of(document):
    def line(value):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    members = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            text = "[\n " + ",\n ".join(line(one) for one in value) + "\n]"
        else:
            text = line(value)
        members.append(f"{line(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    with open(sys.argv[2], encoding="utf-8") as file:
        document = json.load(file)
    sys.stdout.write(text_of(condensed(document, empty_run(sys.argv[1]))))


if __name__ == "__main__":
    main()
