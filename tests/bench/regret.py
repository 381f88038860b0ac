#!/usr/bin/env python3
"""How good are the recommendations of `lockbench choose`? Draws requirements at random (again if fewer than two strategies
meet them), asks with and without --measure, and measures each first choice and all other qualifying strategies. A choice
is good if it is within a quarter of the best or in the best one's tier, and no run with recommended settings may break
exclusion. Can be stopped and restarted. Needs an otherwise idle machine; 40 sets take two and a half hours.
Writes regret.csv in the folder, too.
Usage: regret.py FOLDER [SETS=40] [LOCKBENCH]"""

import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys

FOLDER = sys.argv[1]
SETS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
LOCKBENCH = sys.argv[3] if len(sys.argv) > 3 else "build/release/lockbench"
STORES = [["redis"], ["postgres"], ["redis", "postgres"], ["zookeeper", "etcd"],
          ["redis", "memcached", "zookeeper", "etcd", "postgres"]]
FAULTS = ["host-crash", "pause", "partition", "restart", "overrun", "memory-pressure"]
OBJECTIVES = ["acquire.p50", "acquire.p99", "fairness.longest_wait_seconds"]
ROUNDS, SECONDS = 3, 3
GOOD, TENTH = 1.25, 1.1


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw(rng):
    hold, rtt = log_uniform(rng, 0.0002, 0.05), rng.choice([0, rng.uniform(0, 0.005)])
    keys = round(log_uniform(rng, 1, 50))
    rate = rng.uniform(0.05, 0.9) * keys / (hold + rtt)
    return {
        "stores": rng.choice(STORES),
        "survive": rng.sample(FAULTS, rng.choice([0, 0, 1, 2])),
        "clients": max(2, round(log_uniform(rng, 2, 200))),
        "keys": keys,
        "rate": rate,
        "hold_us": round(hold * 1e6),
        "rtt_us": round(rtt * 1e6),
        "objective": rng.choice(OBJECTIVES),
    }


def lockbench(arguments):
    return subprocess.run([LOCKBENCH, *arguments], capture_output=True, text=True, check=False)


def choose(case, extra):
    arguments = ["choose", "--format", "json", "--stores", ",".join(case["stores"]),
                 "--clients", str(case["clients"]), "--keys", str(case["keys"]),
                 "--rate", f"{case['rate']:.6g}", "--work-time-p50", f"{case['hold_us']}us",
                 "--rank-by", case["objective"], *extra]
    if case["survive"]:
        arguments += ["--survive", ",".join(case["survive"])]
    if case["rtt_us"]:
        arguments += ["--rtt", f"{case['rtt_us']}us"]
    done = lockbench(arguments)
    if done.returncode not in (0, 2, 5, 99):
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


def first_of(answer):
    """The first choice; if no strategy keeps up, the next best."""
    if answer["qualify"]:
        return answer["qualify"][0]["strategy"]
    return answer["relaxations"][0]["strategies"][0]


def settings(answer):
    return [word for one in answer["settings"] if one["value"] for word in (one["option"], one["value"])]


def measure(case, strategies, extra, out):
    arguments = ["run", *strategies, "--clients", str(case["clients"]), "--keys", str(case["keys"]),
                 "--rate", f"{case['rate']:.6g}", "--hold", f"{case['hold_us']}us", "--repeat", str(ROUNDS),
                 "--duration", f"{SECONDS}s", "--quiet", "--allow-no-grants", "--out", out, *extra]
    if case["rtt_us"]:
        arguments += ["--rtt", f"{case['rtt_us']}us"]
    done = lockbench(arguments)
    if not os.path.exists(out):
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    with open(out, encoding="utf-8") as file:
        return json.load(file)["runs"]


def value(run, path):
    for part in path.split("."):
        run = run[part] if run is not None else None
    return run


def judge(case, choice, runs):
    """The choice's figure against the best one's."""
    values = {}
    for run in runs:
        found = value(run, case["objective"])
        if found is not None:
            values.setdefault(run["strategy"], []).append(max(found, 1e-9))
    if choice not in values:
        return {"choice": choice, "ratio": None, "good": False}
    best = min(values, key=lambda one: statistics.median(values[one]))
    ratio = statistics.median(values[choice]) / statistics.median(values[best])
    # The same tier: the 95 % interval of the ratio includes 1 (Welch).
    a, b = ([math.log(one) for one in values[name]] for name in (best, choice))
    together = False
    if min(len(a), len(b)) > 1:
        error = math.sqrt(statistics.variance(a) / len(a) + statistics.variance(b) / len(b))
        together = abs(statistics.mean(b) - statistics.mean(a)) < max(2.776 * error, math.log(TENTH))
    return {"choice": choice, "best": best, "ratio": ratio, "good": ratio <= GOOD or together}


def run_set(number):
    path = os.path.join(FOLDER, f"{number}.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    rng = random.Random(1000 + number)
    while True:
        case = draw(rng)
        asked = choose(case, [])
        if len(asked["qualify"]) >= 2:
            break
    measured = choose(case, ["--measure", "--out", os.path.join(FOLDER, f"{number}.measure.json")])
    if f"{number}.measure.json" not in measured["ranked_by"]["measured_in"]:
        sys.exit(f"set {number}: --measure answers from {measured['ranked_by']['measured_in']}")
    qualifying = [one["strategy"] for one in asked["qualify"]]
    runs = measure(case, qualifying, [], os.path.join(FOLDER, f"{number}.runs.json"))
    result = {"case": case, "plain": judge(case, first_of(asked), runs),
              "measured": judge(case, first_of(measured), runs), "violated": []}
    for name, answer in (("plain", asked), ("measured", measured)):
        first = first_of(answer)
        tried = measure(case, [first], settings(answer), os.path.join(FOLDER, f"{number}.{name}.json"))
        if any(run["audit"]["verdict"] == "violated" for run in tried):
            result["violated"].append(f"{first} {' '.join(settings(answer))}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file)
    return result


def row(number, result):
    case, plain, measured = result["case"], result["plain"], result["measured"]
    return {
        "set": number, **case, "stores": "+".join(case["stores"]), "survive": "+".join(case["survive"]),
        "rate": f"{case['rate']:.6g}", "best": plain.get("best"),
        **{f"{name}_{column}": value for name, judged in (("plain", plain), ("measured", measured))
           for column, value in (("choice", judged["choice"]), ("good", judged["good"]),
                                 ("ratio", judged["ratio"] and f"{judged['ratio']:.3g}"))},
        "violated": "; ".join(result["violated"]),
    }


def main():
    os.makedirs(FOLDER, exist_ok=True)
    rows, violated = [], 0
    with open(os.path.join(FOLDER, "regret.csv"), "w", encoding="utf-8", newline="") as file:
        for number in range(SETS):
            result = run_set(number)
            violated += len(result["violated"])
            rows.append(row(number, result))
            if number == 0:
                table = csv.DictWriter(file, rows[0], lineterminator="\n")
                table.writeheader()
            table.writerow(rows[-1])
            file.flush()
            print(*rows[-1].values(), flush=True)
    good = {name: sum(one[f"{name}_good"] for one in rows) for name in ("plain", "measured")}
    print(f"good of {SETS}: {good['plain']} without --measure, {good['measured']} with; "
          f"recommended settings that were violated: {violated}")


main()
