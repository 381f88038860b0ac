#!/usr/bin/env python3
"""Is what `lockbench watch` says true? Plays applications that log what they do, at several rates and in each mode,
with the least rights that docs/watch.md names, each on its own server, and compares the watch's figures with that log.
Prints the table in docs/watch.md; exits with 1 if a figure is not as accurate as it says, or a finding names no lock.
Without --table, a low and a high rate for a few seconds: four minutes in all.
Usage: watch_truth.py [--lockbench FILE] [--table] [--seconds N] [--rates N,...] [--modes notifications,...] [--keep]"""

import contextlib
import datetime
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

from applications import OnEtcd, OnPostgres, OnRedis, OnZookeeper, watcher
from stage import STALLS, Program, Redis, Verdict, arguments, in_file
from servers import Servers

NAME = "(?:/?locks?[:/])?(?<family>[a-z]+)[:/].*"
# Of events that are findings.
FOUND = {"owner_changed": "stolen", "taken_over": "taken_over", "expired_while_held": "expired",
         "session_lost": "dead_session"}
COUNTS = {"acquisitions": "acquired", "releases": "released", "renewals": "renewed", "expired": "expired",
          "taken_over": "taken_over", "owner_changed": "stolen"}


class OfRedis:
    """A mode of Redis: flags of notify-keyspace-events, rights that the watch's user lacks, and what it must say."""

    rates, fewer_rates = (10, 100, 1000, 3000), (10, 3000)
    seconds_to_settle = 2.5

    def __init__(self, flags, without, says=""):
        self.flags, self.without, self.says = flags, without, says

    def begin(self, folder, rate, ending):
        """Returns the application, and the arguments of the watch."""
        redis = Redis(folder / "redis", *(["--notify-keyspace-events", self.flags] if self.flags else []))
        ending.callback(redis.stop)
        redis.call(*watcher("watcher", self.without))
        application = OnRedis(redis.port, rate)
        ending.callback(application.close)
        application.at(0, application.order, "order")
        application.at(0.5, application.lost)
        application.at(0, application.hot)
        application.at(0, application.dead)
        for i in range(5):
            application.at(0.1 * i, application.job, f"lock:job:{i}", 0.3)
        url = in_file(folder / "url", f"redis://watcher:hunter2@127.0.0.1:{redis.port}")
        return application, ["--redis", url, "--locks", "lock:*"]


class OfOther:
    """Another store."""

    rates = fewer_rates = (10, 100)
    seconds_to_settle = 5  # etcd's leases live for at least 2 s
    without, says = (), ""

    def __init__(self, store, application, locks):
        self.store, self.application, self.locks = store, application, locks

    def begin(self, folder, rate, ending):
        servers = Servers(str(folder))
        ending.callback(servers.stop)
        url = {"etcd": lambda: servers.etcd(1)[0][0], "zookeeper": servers.zookeeper,
               "postgres": lambda: servers.postgres({})}[self.store]()
        application = self.application(url, rate)
        ending.callback(application.close)
        return application, [f"--{self.store}", url, "--locks", self.locks]


MODES = {
    "notifications": OfRedis("KA", ["+client|tracking"]),
    "tracking": OfRedis("", ["+psubscribe", "+config|get"], "overwritten locks (stolen), as "),
    "refused": OfRedis("KA", ["+psubscribe"], "overwritten locks (stolen), as PSUBSCRIBE was refused"),
    "etcd": OfOther("etcd", OnEtcd, "locks/*"),
    "zookeeper": OfOther("zookeeper", OnZookeeper, "/locks/*"),
    "postgres": OfOther("postgres", OnPostgres, "advisory:*"),
}


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else None


def shown_time(value):
    if value is None:
        return "–"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def play(given, mode, rate, folder):
    """Returns the application, and what the watch saw of it."""
    with contextlib.ExitStack() as ending:
        application, words = mode.begin(folder, rate, ending)
        result = folder / "seen.json"
        watch = Program([given.lockbench, "watch", *words, "--name", NAME, "--no-screen", "--record", result], folder)
        ending.callback(watch.stop)
        watch.expect_line("; waiters: ")
        time.sleep(0.5)  # for its first look at all keys
        application.play(given.seconds)
        time.sleep(mode.seconds_to_settle)
        watch.signal(signal.SIGINT)
        code = watch.wait(60)
        if given.keep or code:
            print("\n".join(line for _, line in watch.said), file=sys.stderr)
        if code:
            raise RuntimeError(f"the watch ended with {code}")
        return application, json.loads(result.read_text())


def count(family, figure):
    """Expiries of locks that seem to be never released, and those of sessions, are counted apart."""
    if figure == "expired":
        return sum(family.get(one, 0) for one in ("expired_while_held", "lapsed", "session_lost"))
    return family.get(figure, 0)


def judge_counts(name, true, family, told, expect):
    """Figures never exceed what happened; exact ones equal it. `told`: the store tells of overwritten locks."""
    for figure, of in COUNTS.items():
        happened, seen = getattr(true, of), count(family, figure)
        if name == "stolen" and figure == "releases" and not told:
            continue  # an overwritten lock may look like one that was released and taken
        expect(seen <= happened, f"{name}: {figure}: {seen}, but {happened} happened")
    if family["accuracy"] != "exact" or name == "stolen":
        return
    for figure in ("acquisitions", "releases", "expired"):
        happened, seen = getattr(true, COUNTS[figure]), count(family, figure)
        least = happened if figure == "acquisitions" else happened - family["undecided"]
        expect(seen >= least, f"{name}: {figure}: exactly {seen}, but {happened} happened")


def judge(place, mode, application, seen, verdict):
    def expect(holds, what):
        verdict.expect_unless(application.disturbed, holds, f"{place}: {what}")

    families = {one["family"]: one for one in seen["observed"]}
    (source,) = seen["sources"]
    told = "notifications" in source["way"]
    for name, true in application.families.items():
        if name in families:
            judge_counts(name, true, families[name], told, expect)
        else:
            expect(source["accuracy"] != "exact", f"{name} was not seen")
    expect(set(families) <= set(application.families), f"no such families: {set(families)}")
    expect(not mode.says or any(mode.says in one for one in source["unseen"]),
           f"what cannot be seen is not named: {source['unseen']}")
    findings = seen.get("findings", [])
    kinds = {(one["kind"], one["family"]) for one in findings}
    for name, family in families.items():
        for figure, kind in FOUND.items():
            expect((family[figure] > 0) == ((kind, name) in kinds), f"{name}: {family[figure]} {kind}: {kinds}")
    expect((source["missed"] > 0) == any(one["kind"] == "missed" for one in findings), "what was missed is no finding")
    for finding in findings:
        named = finding["lock"] or not finding["family"] or finding["kind"] == "hog"
        expect(named, f"{finding['kind']} of {finding['family']} names no lock")


def judge_holds(place, true, family, verdict):
    seen = (family.get("hold") or {}).get("p50")
    if not seen or family["accuracy"] == "sampled" or (family["hold_share"] or 0) < 0.95:
        return
    verdict.expect_in_time(0.8 * true < seen < 1.25 * true,
                           f"{place}: hold p50 {shown_time(seen)}, but {shown_time(true)} was true")


def line(name, mode, rate, application, seen):
    families, (source,) = seen["observed"], seen["sources"]
    main = "advisory" if "advisory" in application.families else "order"
    order = next((one for one in families if one["family"] == main), {})

    def pair(figure):
        true = sum(getattr(one, COUNTS[figure]) for one in application.families.values())
        said = sum(count(one, figure) for one in families)
        return f"{said:,} of {true:,}" if said or true else "–"

    def share(of):
        return "–" if order.get(of) is None else f"{order[of]:.0%}"

    hold = shown_time((order.get("hold") or {}).get("p50"))
    true_hold = shown_time(percentile(application.families[main].holds, 0.5))
    grants = sum(one.acquired for one in application.families.values())
    cells = [name, ", ".join(f"`{right[1:]}`".replace("|", "\\|") for right in mode.without) or "–", f"{rate:,}",
             order.get("accuracy", "–"), *map(pair, COUNTS), f"{hold} of {true_hold}", share("hold_share"),
             share("owner_share"), f"{source['missed']:,}", f"{source['commands'] / grants:.2f}"]
    return "| " + " | ".join(cells) + " |"


def judge_refusal(given, folder, verdict):
    """Without the right to be told of changes in any way, the watch says so and ends."""
    with contextlib.ExitStack() as ending:
        _, words = OfRedis("KA", ["+psubscribe", "+client|tracking"]).begin(folder, 1, ending)
        watch = Program([given.lockbench, "watch", *words, "--no-screen"], folder)
        ending.callback(watch.stop)
        code = watch.wait(60)
        verdict.expect(code == 1 and watch.says("client|tracking"), f"without rights: ended with {code}: {watch.said}")


def main():
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=int, help="how long each application works")
    parser.add_argument("--rates", help="grants a second")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--keep", action="store_true", help="show what the watch says")
    given = parser.parse_args()
    given.lockbench = given.lockbench.resolve()
    given.seconds = given.seconds or (20 if given.table else 8)
    verdict = Verdict()
    print(f"<!-- tests/full/oncall/watch_truth.py, {datetime.date.today()} -->")
    print("| mode | without the right | grants/s | accuracy | acquired | released | renewed | expired | taken over | "
          "stolen | hold p50 | lengths seen | owners seen | missed | commands per grant |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in given.modes.split(","):
        mode = MODES[name]
        rates = given.rates.split(",") if given.rates else mode.rates if given.table else mode.fewer_rates
        for rate in map(int, rates):
            with tempfile.TemporaryDirectory(prefix="lockbench-truth-") as text:
                os.chmod(text, 0o755)  # PostgreSQL does not run as root
                STALLS.worst = 0
                application, seen = play(given, mode, rate, pathlib.Path(text))
                print(line(name, mode, rate, application, seen), flush=True)
                place = f"{name}, {rate}/s"
                judge(place, mode, application, seen, verdict)
                for family in seen["observed"]:
                    true = percentile(application.families[family["family"]].holds, 0.5)
                    if true:
                        judge_holds(place, true, family, verdict)
    with tempfile.TemporaryDirectory(prefix="lockbench-truth-") as text:
        judge_refusal(given, pathlib.Path(text), verdict)
    verdict.exit()


if __name__ == "__main__":
    main()
