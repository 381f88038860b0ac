#!/usr/bin/env python3
"""Symptoms of each fault for an on-call engineer: real Redis servers, a real probe of each with the settings of the
systemd unit, and a real Prometheus with the shipped intervals and rules. Prints the table of faults in docs/alerts.md.
All faults strike at the same time, each its own server, so the whole takes about nine minutes.
Usage: oncall.py [--lockbench FILE] [--root FOLDER] [FAULT...]     --root: the source folder with rules and unit"""

import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HEALTHY_SECONDS = 65  # before the faults: every window that an alert needs has data
WATCHED_SECONDS = 330  # after the last fault was healed: alerts over five minutes end
EVALUATION_SECONDS = 15  # as in prometheus.yml
PASSWORD = "s3cret-of-the-probe"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def http(url, timeout=2.0):
    """Status and text; status 0 without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def redis_call(port, *words, password=None, timeout=5.0):
    """Sends one command on a new connection; returns the raw answer."""
    text = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        for command in ([("AUTH", password)] if password else []) + [words]:
            message = b"*%d\r\n" % len(command)
            for word in command:
                raw = str(word).encode()
                message += b"$%d\r\n%s\r\n" % (len(raw), raw)
            connection.sendall(message)
            text = connection.recv(1 << 20)
    return text.decode(errors="replace")


class Redis:
    """A server with its own folder, without durability by default."""

    def __init__(self, folder, *options, sentinel=False):
        self.folder, self.port, self.options = folder, free_port(), options
        self.program = "redis-sentinel" if sentinel else "redis-server"
        folder.mkdir()
        self.process = None
        self.start()

    def start(self):
        arguments = ["--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--enable-debug-command", "yes",
                     "--save", "", "--logfile", self.folder / "log", *self.options]
        if self.program == "redis-sentinel":
            config = self.folder / "sentinel.conf"
            config.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n" + "\n".join(self.options))
            arguments = [config, "--logfile", self.folder / "log"]
        self.process = subprocess.Popen([self.program, *map(str, arguments)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if redis_call(self.port, "PING"):
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{self.program} does not answer; see {self.folder}/log")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def call(self, *words, **more):
        return redis_call(self.port, *words, **more)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()


class Fault:
    """A server, its probe, and the fault of the server."""

    lasts = 120

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
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        threading.Thread(target=self.listen, args=[self.process], daemon=True).start()

    def listen(self, process):
        for line in process.stderr:
            self.said.append((time.time(), line.strip()))

    def watch(self):
        status, text = http(f"http://127.0.0.1:{self.ready_port}/-/ready")
        if not self.readiness or self.readiness[-1][1] != status:
            self.readiness.append((time.time(), status, text.strip()))

    def metric(self, name):
        for line in http(f"http://127.0.0.1:{self.ready_port}/metrics")[1].splitlines():
            if line.startswith(name):
                return float(line.rsplit(" ", 1)[1])
        return None

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
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()
        self.redis.stop()


class Blip(Fault):
    """the server is killed, and is back, empty, after 4 s"""

    lasts = 4

    def strike(self):
        self.redis.kill()

    def heal(self):
        self.redis.start()


class Kill(Blip):
    """the server is killed, and is back, empty, after 2 min"""

    lasts = 120


class Freeze(Fault):
    """the server hangs for 2 min (SIGSTOP)"""

    def strike(self):
        self.redis.signal(signal.SIGSTOP)

    def heal(self):
        self.redis.signal(signal.SIGCONT)


class Slow(Fault):
    """the server is slow for 1 min (`DEBUG SLEEP 0.9`, over and over)"""

    lasts = 60

    def strike(self):
        self.repeat(lambda: self.redis.call("DEBUG", "SLEEP", "0.9"))


class Oom(Fault):
    """the server is out of memory for 2 min (`maxmemory 1`)"""

    def strike(self):
        self.redis.call("CONFIG", "SET", "maxmemory", "1")

    def heal(self):
        self.redis.call("CONFIG", "SET", "maxmemory", "0")


class ReadOnly(Fault):
    """the server became a replica, for 2 min"""

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

    lasts = 60

    def strike(self):
        self.repeat(lambda: self.redis.call("FLUSHALL"), 1)


class Stuck(Fault):
    """one of two locks is taken for 2 min by somebody else"""

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
        self.process.wait()
        self.start_probe()


class Full(Fault):
    """the server accepts no further connections for 2 min (`maxclients 1`)"""

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
        self.process.send_signal(signal.SIGSTOP)

    def heal(self):
        self.process.send_signal(signal.SIGCONT)


class Gone(Fault):
    """the probe itself is gone for 150 s"""

    lasts = 150

    def strike(self):
        self.process.kill()

    def heal(self):
        self.start_probe()


FAULTS = {"blip": Blip, "kill": Kill, "cold": Cold, "freeze": Freeze, "slow": Slow, "oom": Oom, "read-only": ReadOnly,
          "password": Password, "full": Full, "deleted": Deleted, "stuck": Stuck, "failover": Failover, "paused": Paused,
          "gone": Gone}


class Prometheus:
    """A Prometheus with the shipped configuration but these targets."""

    def __init__(self, folder, root, faults):
        folder.mkdir()
        rules = root / "dashboards/prometheus"
        text = (rules / "prometheus.yml").read_text()
        for name in ("recording.yml", "alerts.yml"):
            text = text.replace(f"- {name}", f"- {rules / name}")
        targets = ", ".join(f"'127.0.0.1:{fault.ready_port}'" for fault in faults)
        text = text.replace("['127.0.0.1:9465']", f"[{targets}]")
        (folder / "prometheus.yml").write_text(text)
        self.port = free_port()
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"])
        self.firing = {}  # (instance, alert) to [first seen, last seen, severity, summaries, times it fired]
        self.watched_at = 0.0

    def watch(self):
        status, text = http(f"http://127.0.0.1:{self.port}/api/v1/alerts")
        self.watched_at = now = time.time()
        for alert in json.loads(text)["data"]["alerts"] if status == 200 else []:
            labels = alert["labels"]
            if alert["state"] != "firing" or "instance" not in labels:
                continue
            place = self.firing.setdefault((labels["instance"], labels["alertname"], labels.get("strategy", "")),
                                           [now, now, labels["severity"], [], 1])
            place[4] += now - place[1] > EVALUATION_SECONDS / 2
            place[1] = now
            summary = alert["annotations"]["summary"]
            if summary not in place[3]:
                place[3].append(summary)

    def median(self, expression):
        """Of its series' values now."""
        query = urllib.parse.urlencode({"query": f"quantile(0.5, {expression})"})
        status, text = http(f"http://127.0.0.1:{self.port}/api/v1/query?{query}")
        found = json.loads(text)["data"]["result"] if status == 200 else []
        return float(found[0]["value"][1]) if found else math.nan

    def health(self):
        """Measurements of healthy probes, as a reference for the boards."""
        quantile = ("histogram_quantile({}, sum by (instance, le) (rate("
                    "lockbench_uncontended_acquire_duration_seconds_bucket[1m])))")
        p50, p99 = (self.median(quantile.format(share)) * 1000 for share in (0.5, 0.99))
        return (f"Before the faults, in the median of the probes: uncontended acquisitions took {p50:.2f} ms (p50) and "
                f"{p99:.2f} ms (p99); the smallest renewal margin was {self.median('lockbench:renewal_margin:p01_share5m'):.0%} "
                f"of the TTL; the probe sent {self.median('lockbench:store_commands:per_section5m'):.1f} commands per section; "
                f"second clients wanted a held lock "
                f"{self.median('rate(lockbench_contended_grants_total[1m])'):.2f} times per second.")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def after(moment, start):
    return f"{moment - start:.0f} s"


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
    return ", then ".join(f"{text} ({', '.join(sorted(names)) + ', ' if len(names) == 1 else ''}"
                          f"{after(moment, fault.struck_at)})" for moment, text, names in said.values()) or "–"


def alerts_of(fault, prometheus):
    """Names and facts of alerts, in order of their start."""
    found = [(name, seen) for (where, name, _), seen in prometheus.firing.items()
             if where == f"127.0.0.1:{fault.ready_port}"]
    return sorted(found, key=lambda one: one[1][0])


def row(fault, prometheus):
    unready = [(at, text) for at, status, text in fault.readiness if status == 503 and at >= fault.struck_at]
    ready = f"503 after {after(unready[0][0], fault.struck_at)}" if unready else "200"
    if any(status == 0 and at >= fault.struck_at for at, status, _ in fault.readiness):
        ready = "no answer"
    if any(status == 404 for _, status, _ in fault.readiness):
        ready = "–"
    alerts = []
    for name, (first, last, severity, _, times) in alerts_of(fault, prometheus):
        text = f"[`{name}`](#{name.lower()}) ({severity}) after {after(first, fault.struck_at)}"
        if first < fault.struck_at:
            text += " (before the fault!)"
        if times > 1:
            text += f", {times} times"
        if prometheus.watched_at - last < 1:
            text += f", and still {after(last, fault.healed_at)} after its end"
        elif last > fault.healed_at:
            text += f", until {after(last, fault.healed_at)} after its end"
        alerts.append(text)
    cells = [fault.__doc__, messages(fault).replace("|", "\\|"), ready, "; ".join(alerts) or "none"]
    text = "| " + " | ".join(cells).replace(f"127.0.0.1:{fault.redis.port}", "redis:6379") + " |"
    return re.sub(r"127\.0\.0\.1:\d+/", "sentinel:26379/", text)


def unit_of(root):
    for line in (root / "exporter/lockbench-probe.service").read_text().splitlines():
        if line.startswith("ExecStart="):
            return shlex.split(line.removeprefix("ExecStart="))
    raise RuntimeError("the unit has no ExecStart")


def main():
    home = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockbench", type=pathlib.Path, default=home / "build/release/lockbench")
    parser.add_argument("--root", type=pathlib.Path, default=home)
    parser.add_argument("faults", nargs="*", choices=[[], *FAULTS], metavar="FAULT", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lockbench-oncall-") as text, contextlib.ExitStack() as ending:
        folder, faults = pathlib.Path(text), []
        for name in given.faults or FAULTS:
            faults.append(FAULTS[name](folder / name))
            ending.callback(faults[-1].stop)
        for fault in faults:
            fault.program = (given.lockbench.resolve(), unit_of(given.root))
            fault.start_probe()
        prometheus = Prometheus(folder / "prometheus", given.root.resolve(), faults)
        ending.callback(prometheus.stop)
        begun = time.time()
        healthy = ""
        players = [threading.Thread(target=fault.play) for fault in faults]
        while not all(fault.healed_at for fault in faults) or time.time() < max(
                fault.healed_at for fault in faults) + WATCHED_SECONDS:
            if players and time.time() > begun + HEALTHY_SECONDS:
                healthy = prometheus.health()
                for player in players:
                    player.start()
                players = []
            for fault in faults:
                fault.watch()
            prometheus.watch()
            time.sleep(0.3)
        print(f"<!-- tests/bench/oncall.py, {datetime.date.today()} -->")
        print("| fault | the probe says (after) | `/-/ready` | alerts |\n|---|---|---|---|")
        for fault in faults:
            print(f"{fault.folder.name} could not be played" if fault.failed else row(fault, prometheus))
        print(f"\n{healthy}")
        for fault in faults:
            print(f"\n{fault.folder.name}:", file=os.sys.stderr)
            for name, (_, _, _, summaries, _) in alerts_of(fault, prometheus):
                print(f"  {name}: {' | '.join(summaries)}", file=os.sys.stderr)
            for moment, line in fault.said:
                since = moment - fault.struck_at
                print(f"  {since:7.1f} s  {line}", file=os.sys.stderr)


if __name__ == "__main__":
    main()
