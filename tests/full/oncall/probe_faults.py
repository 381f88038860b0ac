#!/usr/bin/env python3
"""Symptoms of each fault for an on-call engineer: real Redis servers, a real probe of each with the settings of the
systemd unit, and a real Prometheus with the shipped intervals and rules. Prints the table of faults in docs/alerts.md;
exits with 1 if an alert is missing, late, or critical for another reason. All faults strike at the same time, each its
own server: a few faults, shortened, take three minutes; with --table all of them nine.
Usage: probe_faults.py [--lockbench FILE] [--table] [--root FOLDER] [FAULT...]; --root: the source folder with rules
and unit"""

import contextlib
import datetime
import math
import pathlib
import re
import shlex
import signal
import socket
import sys
import tempfile
import threading
import time

from stage import ROOT, Program, Prometheus, Redis, Verdict, after, arguments, free_port, http

HEALTHY_SECONDS = 65  # before the faults: every window that an alert needs has data
WATCHED_SECONDS = 330  # after the last fault was healed: alerts over five minutes end
# Without --table: these faults, for this long at most, and watched for this long.
FEW, SHORT_SECONDS, SHORTLY_WATCHED_SECONDS = ("blip", "oom", "deleted", "stuck", "paused"), 75, 20
# How long after the fault an alert may fire: its window of 30 s or 1 min, until half of it is bad, or its `for`; a
# scrape, an evaluation, and some seconds for Prometheus itself.
FAILING = {"LockbenchProbeFailing": 75}
PASSWORD = "s3cret-of-the-probe"


class Fault:
    """A server, its probe, and the fault of the server."""

    lasts = 120
    alerts = {}  # that must fire, and within how many seconds
    also = ()  # critical alerts that may

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.program = None  # of the probe, and its arguments in the unit
        self.redis = Redis(folder / "redis")
        self.ready_port = free_port()
        self.process = None
        self.said = []  # (seconds since the epoch, line)
        self.readiness = []  # (seconds, status, text), where it changed
        self.struck_at = self.healed_at = None
        self.failed = False

    def url(self):
        return f"redis://127.0.0.1:{self.redis.port}"

    def start_probe(self):
        lockbench, unit = self.program
        (self.folder / "probe.toml").write_text(f'redis = ["{self.url()}"]\n')
        words = [word.replace("%d", str(self.folder)) for word in unit]
        words[0] = str(lockbench)
        words[words.index("--metrics-listen") + 1] = f"127.0.0.1:{self.ready_port}"
        self.process = Program(words, self.folder, self.said)

    def watch(self):
        status, text = http(f"http://127.0.0.1:{self.ready_port}/-/ready")
        if not self.readiness or self.readiness[-1][1] != status:
            self.readiness.append((time.time(), status, text.strip()))

    def strike(self):
        raise NotImplementedError

    def heal(self):
        pass

    def play(self):
        self.struck_at = time.time()
        try:
            self.strike()
            left = self.struck_at + self.lasts - time.time()
            if left > 0:
                time.sleep(left)
            self.heal()
        except Exception:
            self.failed = True
            raise
        finally:
            self.healed_at = time.time()  # main waits for it

    def repeat(self, action, pause=0.0):
        until = time.time() + self.lasts
        while time.time() < until:
            with contextlib.suppress(OSError):
                action()
            time.sleep(pause)

    def stop(self):
        if self.process:
            self.process.stop()
        self.redis.stop()


class Blip(Fault):
    """the server is killed, and is back, empty, after 4 s"""

    alerts = {"LockbenchFencingReset": 45}
    also = ("LockbenchExclusionBroken",)
    lasts = 4

    def strike(self):
        self.redis.kill()

    def heal(self):
        self.redis.start()


class Kill(Blip):
    """the server is killed, and is back, empty, after 2 min"""

    alerts = FAILING
    also = ("LockbenchFencingReset",)
    lasts = 120


class Freeze(Fault):
    """the server hangs for 2 min (SIGSTOP)"""

    alerts = FAILING
    also = ("LockbenchProbeSlow",)

    def strike(self):
        self.redis.signal(signal.SIGSTOP)

    def heal(self):
        self.redis.signal(signal.SIGCONT)


class Slow(Fault):
    """the server is slow for 1 min (`DEBUG SLEEP 0.9`, over and over)"""

    alerts = {"LockbenchProbeSlow": 75}
    also = ("LockbenchProbeFailing",)
    lasts = 60

    def strike(self):
        self.repeat(lambda: self.redis.call("DEBUG", "SLEEP", "0.9"))


class Oom(Fault):
    """the server is out of memory for 2 min (`maxmemory 1`)"""

    alerts = FAILING

    def strike(self):
        self.redis.call("CONFIG", "SET", "maxmemory", "1")

    def heal(self):
        self.redis.call("CONFIG", "SET", "maxmemory", "0")


class ReadOnly(Fault):
    """the server became a replica, for 2 min"""

    alerts = FAILING
    also = ("LockbenchFencingReset", "LockbenchExclusionBroken")

    def __init__(self, folder):
        super().__init__(folder)
        self.primary = Redis(folder / "primary")

    def strike(self):
        self.redis.call("REPLICAOF", "127.0.0.1", self.primary.port)

    def heal(self):
        self.redis.call("REPLICAOF", "NO", "ONE")

    def stop(self):
        super().stop()
        self.primary.stop()


class Password(Fault):
    """the password is changed, and connections are closed, for 2 min"""

    alerts = FAILING

    def __init__(self, folder):
        super().__init__(folder)
        self.redis.call("CONFIG", "SET", "requirepass", PASSWORD)

    def url(self):
        return f"redis://:{PASSWORD}@127.0.0.1:{self.redis.port}"

    def strike(self):
        self.redis.call("CONFIG", "SET", "requirepass", "another", password=PASSWORD)
        self.redis.call("CLIENT", "KILL", "TYPE", "normal", password="another")

    def heal(self):
        self.redis.call("CONFIG", "SET", "requirepass", PASSWORD, password="another")


class Deleted(Fault):
    """the probe's keys are deleted every second for 1 min"""

    alerts = {"LockbenchExclusionBroken": 60}
    also = ("LockbenchFencingReset",)
    lasts = 60

    def strike(self):
        self.repeat(lambda: self.redis.call("FLUSHALL"), 1)


class Stuck(Fault):
    """one of two locks is taken for 2 min by somebody else"""

    alerts = {"LockbenchLockStuck": 60}
    key = None

    def strike(self):
        # A lock's key exists while it is held.
        deadline = time.monotonic() + 30
        while not self.key:
            if time.monotonic() > deadline:
                raise RuntimeError("the probe takes no lock")
            for word in self.redis.call("KEYS", "lockbench:*").split():
                self.key = word if word.endswith(":0}") else self.key
        self.struck_at = time.time()
        self.redis.call("SET", self.key, "somebody")

    def heal(self):
        self.redis.call("DEL", self.key)


class Failover(Fault):
    """the primary is killed, and a sentinel promotes its replica"""

    also = ("LockbenchFencingReset", "LockbenchExclusionBroken")
    lasts = 60

    def __init__(self, folder):
        super().__init__(folder)
        self.replica = Redis(folder / "replica", "--replicaof", "127.0.0.1", str(self.redis.port))
        self.sentinel = Redis(folder / "sentinel", f"sentinel monitor primary 127.0.0.1 {self.redis.port} 1",
                              "sentinel down-after-milliseconds primary 2000", sentinel=True)

    def url(self):
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/primary"

    def strike(self):
        self.redis.kill()

    def stop(self):
        super().stop()
        self.sentinel.stop()
        self.replica.stop()


class Cold(Kill):
    """the server is killed, and is back, empty, after 2 min; meanwhile the probe is restarted"""

    def strike(self):
        super().strike()
        self.process.kill()
        self.start_probe()


class Full(Fault):
    """the server accepts no further connections for 2 min (`maxclients 1`)"""

    alerts = {"LockbenchConnectionsRefused": 120}

    def strike(self):
        self.admin = socket.create_connection(("127.0.0.1", self.redis.port))
        self.admin.sendall(b"CONFIG SET maxclients 1\r\n")
        self.admin.recv(100)

    def heal(self):
        self.admin.sendall(b"CONFIG SET maxclients 10000\r\n")
        self.admin.recv(100)
        self.admin.close()


class Paused(Fault):
    """the probe's own process stands still for 20 s (SIGSTOP)"""

    lasts = 20

    def strike(self):
        self.process.signal(signal.SIGSTOP)

    def heal(self):
        self.process.signal(signal.SIGCONT)


class Gone(Fault):
    """the probe itself is gone for 150 s"""

    alerts = {"LockbenchProbeDown": 150}
    lasts = 150

    def strike(self):
        self.process.kill()

    def heal(self):
        self.start_probe()


FAULTS = {"blip": Blip, "kill": Kill, "cold": Cold, "freeze": Freeze, "slow": Slow, "oom": Oom, "read-only": ReadOnly,
          "password": Password, "full": Full, "deleted": Deleted, "stuck": Stuck, "failover": Failover,
          "paused": Paused, "gone": Gone}


def health(prometheus):
    """Measurements of healthy probes, as a reference for the boards."""
    quantile = ("histogram_quantile({}, sum by (instance, le) (rate("
                "lockbench_uncontended_acquire_duration_seconds_bucket[1m])))")
    p50, p99 = (prometheus.median(quantile.format(share)) * 1000 for share in (0.5, 0.99))
    return (f"Before the faults, in the median of the probes: uncontended acquisitions took {p50:.2f} ms (p50) and "
            f"{p99:.2f} ms (p99); the smallest renewal margin was "
            f"{prometheus.median('lockbench:renewal_margin:p01_share5m'):.0%} of the TTL; the probe sent "
            f"{prometheus.median('lockbench:store_commands:per_section5m'):.1f} commands per section; second clients "
            f"wanted a held lock {prometheus.median('rate(lockbench_contended_grants_total[1m])'):.2f} times per "
            "second.")


def messages(fault):
    """What the probe says of the fault, each kind of line once, with the strategy if it is not of both."""
    said = {}  # text without numbers to (moment, text, strategies)
    for moment, line in fault.said:
        found = re.match(r"\S+Z (redis-\S+): (?:still )?(?:failing: )?(.*)", line)
        # Findings are told every 10 s.
        if not found or "working again" in line or not fault.struck_at <= moment <= fault.healed_at + 15:
            continue
        strategy, text = found.groups()
        said.setdefault(re.sub(r"\d+", "", text), (moment, text, set()))[2].add(strategy)
    return ", then ".join(f"{text} ({', '.join(names) + ', ' if len(names) == 1 else ''}"
                          f"{after(moment, fault.struck_at)})" for moment, text, names in said.values()) or "–"


def row(fault, prometheus):
    unready = [(at, text) for at, status, text in fault.readiness if status == 503 and at >= fault.struck_at]
    ready = f"503 after {after(unready[0][0], fault.struck_at)}" if unready else "200"
    if any(status == 0 and at >= fault.struck_at for at, status, _ in fault.readiness):
        ready = "no answer"
    if any(status == 404 for _, status, _ in fault.readiness):
        ready = "–"
    alerts = []
    for alert in prometheus.alerts_of(fault.ready_port):
        text = f"[`{alert.name}`](#{alert.name.lower()}) ({alert.severity}) after {after(alert.first, fault.struck_at)}"
        if alert.first < fault.struck_at:
            text += " (before the fault!)"
        if alert.times > 1:
            text += f", {alert.times} times"
        if prometheus.watched_at - alert.last < 1:
            text += f", and still {after(alert.last, fault.healed_at)} after its end"
        elif alert.last > fault.healed_at:
            text += f", until {after(alert.last, fault.healed_at)} after its end"
        alerts.append(text)
    cells = [fault.__doc__, messages(fault).replace("|", "\\|"), ready, "; ".join(alerts) or "none"]
    text = "| " + " | ".join(cells).replace(f"127.0.0.1:{fault.redis.port}", "redis:6379") + " |"
    return re.sub(r"127\.0\.0\.1:\d+/", "sentinel:26379/", text)


def unit_of(root):
    for line in (root / "exporter/lockbench-probe.service").read_text().splitlines():
        if line.startswith("ExecStart="):
            return shlex.split(line.removeprefix("ExecStart="))
    raise RuntimeError("the unit has no ExecStart")


def judge(fault, prometheus, verdict):
    name, alerts = fault.folder.name, prometheus.alerts_of(fault.ready_port)
    verdict.expect(not fault.failed, f"{name}: could not be played")
    for wanted, seconds in fault.alerts.items():
        late = min((one.first - fault.struck_at for one in alerts if one.name == wanted), default=math.inf)
        verdict.expect_in_time(0 <= late <= seconds, f"{name}: {wanted} after {late:.0f} s, not within {seconds} s", 1)
    pages = {one.name for one in alerts if one.severity == "critical"} - {*fault.alerts, *fault.also}
    verdict.expect_in_time(not pages, f"{name}: {', '.join(sorted(pages))} fired", 1)


def tell(fault, prometheus):
    """All that was said, for whoever writes the page."""
    print(f"\n{fault.folder.name}:", file=sys.stderr)
    for alert in prometheus.alerts_of(fault.ready_port):
        print(f"  {alert.name}: {' | '.join(alert.summaries)}", file=sys.stderr)
    for moment, line in fault.said:
        print(f"  {moment - fault.struck_at:7.1f} s  {line}", file=sys.stderr)


def play(faults, prometheus, watched_seconds):
    """Returns measurements of the healthy probes."""
    begun, healthy = time.time(), ""
    players = [threading.Thread(target=fault.play) for fault in faults]
    while not all(fault.healed_at for fault in faults) or time.time() < max(
            fault.healed_at for fault in faults) + watched_seconds:
        if players and time.time() > begun + HEALTHY_SECONDS:
            healthy = health(prometheus)
            for player in players:
                player.start()
            players = []
        for fault in faults:
            fault.watch()
        prometheus.watch()
        time.sleep(0.3)
    return healthy


def main():
    parser = arguments(__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("faults", nargs="*", choices=[[], *FAULTS], metavar="FAULT", default=[])
    given = parser.parse_args()
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix="lockbench-oncall-") as text, contextlib.ExitStack() as ending:
        folder, faults = pathlib.Path(text), []
        for name in given.faults or (FAULTS if given.table else FEW):
            faults.append(FAULTS[name](folder / name))
            ending.callback(faults[-1].stop)
        for fault in faults:
            if not given.table:
                fault.lasts = min(fault.lasts, SHORT_SECONDS)
            fault.program = (given.lockbench.resolve(), unit_of(given.root))
            fault.start_probe()
        ports = [fault.ready_port for fault in faults]
        prometheus = Prometheus(folder / "prometheus", given.root.resolve(), {"lockbench-probe": ports})
        ending.callback(prometheus.stop)
        healthy = play(faults, prometheus, WATCHED_SECONDS if given.table else SHORTLY_WATCHED_SECONDS)
        print(f"<!-- tests/full/oncall/probe_faults.py, {datetime.date.today()} -->")
        print("| fault | the probe says (after) | `/-/ready` | alerts |\n|---|---|---|---|")
        for fault in faults:
            if not fault.failed:
                print(row(fault, prometheus))
        print(f"\n{healthy}")
        for fault in faults:
            judge(fault, prometheus, verdict)
            tell(fault, prometheus)
    verdict.exit()


if __name__ == "__main__":
    main()
