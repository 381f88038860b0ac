#!/usr/bin/env python3
"""Does `lockbench watch` wake people for the truth, and only for it? Plays healthy applications beside watches that
have faults of their own, and applications in trouble beside others, all under the shipped rules in a real Prometheus.
Prints two tables of docs/watch.md; exits with 1 if an alert about healthy applications is critical, or if a trouble is
not found, named and alerted in time. It takes --minutes, 2 by default and 30 with --table.
Usage: watch_faults.py [--lockbench FILE] [--table] [--minutes N] [--keep]"""

import contextlib
import datetime
import math
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time

from applications import OnRedis, watcher
from stage import (EVALUATION_SECONDS, ROOT, SCRAPE_SECONDS, Program, Prometheus, Redis, Verdict, after, arguments,
                   free_port, http, in_file, stalled)

NAME = "lock:(?<family>[a-z]+).*"
STRIKES_AT = 15  # seconds: until then Prometheus has seen all families
STRIKES_EVERY = 180
# The watch finds a trouble this soon after it can be known, and Prometheus its alert after its `for`.
FOUND_WITHIN, ALERTED_WITHIN = 3, SCRAPE_SECONDS + EVALUATION_SECONDS + 10
STALL = 1  # seconds, of the machine; a longer one excuses what is late
LATE = 0.5  # renewals may then be late indeed


class Watch:
    """A watch as a service, with a user of its own."""

    def __init__(self, lockbench, folder, name, redis, without=()):
        self.name, self.redis, self.user = name, redis, f"watcher-{name}"
        redis.call(*watcher(self.user, without))
        self.port = free_port()
        self.program = Program(
            [lockbench, "watch", "--redis",
             in_file(folder / f"{name}.url", f"redis://{self.user}:hunter2@127.0.0.1:{redis.port}"), "--locks", "lock:*",
             "--name", NAME, "--never-released", "lock:schedule:*", "--no-screen", "--metrics-listen",
             f"127.0.0.1:{self.port}"], folder)


class OwnFault:
    """A fault of a watch."""

    name, lasts = "none", 0

    def __init__(self, watch):
        self.watch = watch
        self.struck_at = []

    def cut(self):
        self.watch.redis.call("CLIENT", "KILL", "USER", self.watch.user)

    def change(self, *rules):
        self.watch.redis.call("ACL", "SETUSER", self.watch.user, *rules)
        self.cut()

    def strike(self):
        pass

    def heal(self):
        pass

    def play(self, until):
        """Strikes over and over."""
        next_at = time.time() + STRIKES_AT
        while self.lasts and next_at + self.lasts + 5 < until:
            time.sleep(max(0, next_at - time.time()))
            self.struck_at.append(time.time())
            self.strike()
            time.sleep(max(0, self.struck_at[-1] + self.lasts - time.time()))
            self.heal()
            next_at += STRIKES_EVERY


class SwitchedOff(OwnFault):
    """its user is switched off"""

    name, lasts = "off", 90

    def strike(self):
        self.change("off")

    def heal(self):
        self.change("on")


class Cut(OwnFault):
    """its connections are closed each second"""

    name, lasts = "cut", 30

    def strike(self):
        for _ in range(self.lasts):
            self.cut()
            time.sleep(1)


class Paused(OwnFault):
    """its process stands still (SIGSTOP)"""

    name, lasts = "paused", 40

    def strike(self):
        self.watch.program.signal(signal.SIGSTOP)

    def heal(self):
        self.watch.program.signal(signal.SIGCONT)


class Refused(OwnFault):
    """its right to PSUBSCRIBE is taken, and its connections are closed"""

    name, lasts = "refused", 40
    tracks = False

    def strike(self):
        self.change("-psubscribe")
        time.sleep(5)  # to connect again
        self.tracks = 'way="CLIENT TRACKING"' in http(f"http://127.0.0.1:{self.watch.port}/metrics")[1]

    def heal(self):
        self.change("+psubscribe")


class Troubled(OnRedis):
    """Applications in trouble, one for each finding. `known_at`: when a trouble could first be known."""

    def __init__(self, port):
        super().__init__(port, rate=10)
        self.known_at = {}
        self.be_healthy(beat=1)
        for trouble in TROUBLES:
            if trouble.begins_well:
                self.at(1, self.well, trouble.family)
            self.at(STRIKES_AT, getattr(self, trouble.kind))

    def known(self, when, kind):
        self.at(when, lambda _: self.known_at.setdefault(kind, time.time()))

    def later(self, when, *words):
        self.at(when, lambda _: self.send(*words))

    def well(self, when, family):
        self.grant(when, family, f"lock:{family}:0")
        self.at(when + 0.1, self.release, f"lock:{family}:0")

    def stolen(self, when):
        self.send("SET", "lock:written:1", "first", "NX", "PX", 600000)
        self.later(when + 3, "SET", "lock:written:1", "thief", "PX", 600000)
        self.known(when + 3, "stolen")
        self.later(when + 6, "DEL", "lock:written:1")

    def taken_over(self, when):
        self.send("SET", "lock:over:1", "first", "NX", "PX", 2000)
        self.later(when + 2.3, "SET", "lock:over:1", "second", "NX", "PX", 600000)
        self.known(when + 2.3, "taken_over")
        self.later(when + 6, "DEL", "lock:over:1")

    def expired(self, when):
        self.send("SET", "lock:dead:1", "dead", "NX", "PX", 2000)
        self.known(when + 2, "expired")

    def renewal_stopped(self, when):
        token = self.grant(when, "hung", "lock:hung:1", 8000)
        del self.held["lock:hung:1"]
        for beat in range(1, 5):
            self.at(when + beat, self.renew, "hung", "lock:hung:1", token, 8000)
        self.known(when + 5.6, "renewal_stopped")

    def no_ttl(self, when):
        self.send("SET", "lock:leak:1", "leaker", "NX")
        self.known(when + 1, "no_ttl")

    def held_long(self, when):
        for turn in range(25):
            self.at(when + 0.3 * turn, self.well, "slow")
        self.later(when + 8, "SET", "lock:slow:1", "slow", "NX", "PX", 3600000)
        self.known(when + 9.1, "held_long")

    def thin_margin(self, when):
        self.grant(when, "thin", "lock:thin:1", 3000)
        self.at(when + 2.8, self.release, "lock:thin:1")
        self.known(when + 2.8, "thin_margin")

    def never_released(self, when):
        for turn in range(8):
            self.later(when + turn, "SET", f"lock:cool:{turn}", "cool", "NX", "PX", 300)
        self.known(when + 5.3, "never_released")

    def convoy(self, when):
        self.send("SET", "lock:jam:1", "slow", "NX", "PX", 3600000)
        self.queue(when, 0)
        self.known(when + 70, "convoy")

    def queue(self, when, length):
        self.send("ZADD", "lock:jam:1:queue", length, f"client {length}")
        self.at(when + 0.5, self.queue, length + 1)

    def hog(self, when):
        self.send("ZADD", "lock:hog:1:queue", 1, "waiting")
        for turn in range(130):
            owner = "greedy" if turn % 22 else f"client {turn % 3}"
            self.later(when + 0.1 * turn, "SET", "lock:hog:1", owner, "NX", "PX", 30000)
            self.later(when + 0.1 * turn + 0.06, "DEL", "lock:hog:1")
        self.known(when + 13, "hog")


class Trouble:
    """`alert`: with the seconds of its `for`; `begins_well`: counters exist before, as increase() needs that."""

    def __init__(self, kind, family, alert="", seconds=0, begins_well=True, needs_notifications=False):
        self.kind, self.family, self.alert, self.seconds = kind, family, alert, seconds
        self.begins_well, self.needs_notifications = begins_well, needs_notifications

    def line(self):
        """How the watch's line begins; `hog` is about all locks of a family."""
        return f"{self.kind}: redis {self.family}" + ("" if self.kind == "hog" else f" (lock:{self.family}:")


TROUBLES = (
    Trouble("stolen", "written", "LockbenchLockTakenOver", needs_notifications=True),
    Trouble("taken_over", "over", "LockbenchLockTakenOver"),
    Trouble("expired", "dead", "LockbenchLockExpired"),
    Trouble("renewal_stopped", "hung", "LockbenchLockRenewalStopped"),
    Trouble("no_ttl", "leak", "LockbenchLockWithoutTtl", 300),
    Trouble("held_long", "slow", "LockbenchLockHeldLong", 60),
    Trouble("convoy", "jam", "LockbenchLockQueueGrows", 360),
    Trouble("thin_margin", "thin", "LockbenchLockMarginThin"),
    Trouble("hog", "hog"),
    Trouble("never_released", "cool", begins_well=False),
)


# Findings that are not played in a family: an own fault, and in watch_truth.py.
PLAYED_ELSEWHERE = {"blind", "missed", "dead_session"}


def findings_in_docs():
    text = (ROOT / "docs/watch.md").read_text().split("## What it finds")[1].split("\n### ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def judge_healthy(fault, application, prometheus, verdict):
    """Returns a line of the table."""
    alerts = prometheus.alerts_of(fault.watch.port)
    pages = [one for one in alerts if one.severity == "critical"]
    for one in pages:
        verdict.expect_unless(application.disturbed or stalled(LATE), False,
                              f"healthy, {fault.name}: {one.name} of {one.family}: {one.summaries}")
    if fault.name == "off" and fault.struck_at:
        struck, said = fault.struck_at[0], fault.watch.program.says("blind: redis")
        verdict.expect_in_time(said and said - struck <= FOUND_WITHIN, "it was blind: not said in time", STALL)
        blind = min((one.first - struck for one in alerts if one.name == "LockbenchWatchBlind"), default=math.inf)
        verdict.expect_in_time(0 <= blind <= 60 + ALERTED_WITHIN, f"it was blind: alerted after {blind:.0f} s", STALL)
    if fault.name == "refused" and fault.struck_at:
        verdict.expect(fault.tracks, "PSUBSCRIBE was refused: its way is not said to be CLIENT TRACKING")
    others = sorted({f"`{one.name}` {one.family}".strip() for one in alerts if one not in pages})
    what = f"{fault.__doc__}, {len(fault.struck_at)} × {fault.lasts} s" if fault.lasts else "none"
    pages = sorted({f"`{one.name}` {one.family}" for one in pages})
    return f"| {what} | {', '.join(pages) or 'none'} | {', '.join(others) or 'none'} |"


def found(trouble, watch, application, verdict):
    """When the watch had named the lock, for the table."""
    at = watch.program.says(trouble.line())
    if trouble.needs_notifications and watch.name == "tracking":
        verdict.expect(not at, f"{watch.name}: {trouble.kind} was said, but cannot be seen")
        verdict.expect(watch.program.says("cannot see overwritten locks"), "what cannot be seen is not said")
        return "not seen, and it says so"
    known = application.known_at.get(trouble.kind, math.inf)
    late = max(0, at - known) if at else math.inf
    verdict.expect_unless(application.disturbed or stalled(STALL), late <= FOUND_WITHIN and known < math.inf,
                          f"{watch.name}: {trouble.kind} of {trouble.family} was found after {late:.1f} s")
    return f"{late:.1f} s"


def alerted(trouble, watch, application, prometheus, verdict):
    if not trouble.alert or (trouble.needs_notifications and watch.name == "tracking"):
        return "–"
    known = application.known_at.get(trouble.kind, math.inf)
    at = next((one.first for one in prometheus.alerts_of(watch.port)
               if one.name == trouble.alert and one.family == trouble.family), math.inf)
    latest = known + trouble.seconds + ALERTED_WITHIN
    if at == math.inf and prometheus.watched_at < latest:
        return "not played for so long"
    verdict.expect_unless(application.disturbed or stalled(STALL), at <= latest,
                          f"{watch.name}: {trouble.alert} of {trouble.family} fired after {after(at, known)}")
    return after(at, known)


def judge_troubled(watches, applications, prometheus, verdict):
    """Prints the table."""
    print("\n| trouble | found after: notifications | tracking | alert | fires after: notifications | tracking |\n"
          "|---|---|---|---|---|---|")
    for trouble in TROUBLES:
        pairs = list(zip(watches, applications))
        cells = [f"`{trouble.kind}`", *(found(trouble, *pair, verdict) for pair in pairs),
                 f"`{trouble.alert}`" if trouble.alert else "none",
                 *(alerted(trouble, *pair, prometheus, verdict) for pair in pairs)]
        print("| " + " | ".join(cells) + " |")
    missing = findings_in_docs() ^ {*PLAYED_ELSEWHERE, *(trouble.kind for trouble in TROUBLES)}
    verdict.expect(not missing, f"findings of docs/watch.md and those played differ: {missing}")
    expected = {(trouble.alert, trouble.family) for trouble in TROUBLES}
    for watch, application in zip(watches, applications):
        for one in prometheus.alerts_of(watch.port):
            verdict.expect_unless(application.disturbed,
                                  one.severity != "critical" or (one.name, one.family) in expected,
                                  f"{watch.name}: {one.name} of {one.family}: {one.summaries}")


class Play:
    """The servers, the applications, the watches and their faults."""

    def __init__(self, given, folder, ending):
        self.ending, self.folder, self.lockbench = ending, folder, given.lockbench.resolve()
        healthy = self.redis("healthy", "KA")
        self.healthy = OnRedis(healthy.port, rate=10)
        self.healthy.be_healthy(beat=1)
        self.faults = [kind(self.watch(kind.name, healthy)) for kind in (OwnFault, SwitchedOff, Cut, Paused, Refused)]
        servers = [self.redis("notifications", "KA"), self.redis("tracking", "")]
        self.troubled = [Troubled(redis.port) for redis in servers]
        self.watches = [self.watch("notifications", servers[0], ["+client|tracking"]),
                        self.watch("tracking", servers[1], ["+psubscribe", "+config|get"])]
        for watch in self.all_watches():
            watch.program.expect_line("; waiters: ")
        ports = [watch.port for watch in self.all_watches()]
        self.prometheus = Prometheus(folder / "prometheus", ROOT, {"lockbench-watch": ports})
        ending.callback(self.prometheus.stop)

    def redis(self, name, flags):
        redis = Redis(self.folder / name, *(["--notify-keyspace-events", flags] if flags else []))
        self.ending.callback(redis.stop)
        return redis

    def watch(self, name, redis, without=()):
        watch = Watch(self.lockbench, self.folder, name, redis, without)
        self.ending.callback(watch.program.stop)
        return watch

    def all_watches(self):
        return [fault.watch for fault in self.faults] + self.watches

    def run(self, seconds):
        until = time.time() + seconds
        works = [(one.play, seconds) for one in (self.healthy, *self.troubled)]
        works += [(fault.play, until) for fault in self.faults]
        threads = [threading.Thread(target=work, args=[argument], daemon=True) for work, argument in works]
        for thread in threads:
            thread.start()
        while time.time() < until:
            self.prometheus.watch()
            time.sleep(0.5)
        for thread in threads:
            thread.join()

    def judge(self, verdict):
        for watch in self.all_watches():
            verdict.expect(watch.program.process.poll() is None, f"the watch {watch.name} has ended")
        print("| fault of the watch | critical alerts | other alerts |\n|---|---|---|")
        for fault in self.faults:
            print(judge_healthy(fault, self.healthy, self.prometheus, verdict))
        judge_troubled(self.watches, self.troubled, self.prometheus, verdict)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--keep", action="store_true", help="show what the watches say")
    given = parser.parse_args()
    minutes = given.minutes or (30 if given.table else 2)
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix="lockbench-watch-faults-") as text, contextlib.ExitStack() as ending:
        play = Play(given, pathlib.Path(text), ending)
        play.run(60 * minutes)
        print(f"<!-- tests/full/oncall/watch_faults.py --minutes {minutes:g}, {datetime.date.today()} -->")
        play.judge(verdict)
        for watch in play.all_watches() if given.keep or verdict.failed else []:
            print(f"\n{watch.name}:", file=sys.stderr)
            for moment, line in watch.program.said:
                print(f"  {datetime.datetime.fromtimestamp(moment):%T} {line}", file=sys.stderr)
    verdict.exit()


if __name__ == "__main__":
    main()
