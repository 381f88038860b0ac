"""What the scripts of this folder share: private servers, lockbench as a process, Prometheus with the shipped rules,
and the verdict."""

import argparse
import contextlib
import dataclasses
import json
import math
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/full/answers"))
from judging import STALLS, TOO_BUSY  # noqa: E402
from servers import eventually, free_ports  # noqa: E402

SCRAPE_SECONDS, EVALUATION_SECONDS = 5, 15  # as in prometheus.yml


def free_port():
    return free_ports(1)[0]


def arguments(text):
    """A parser with what all scripts take."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockbench", type=pathlib.Path, default=ROOT / "build/release/lockbench")
    parser.add_argument("--table", action="store_true", help="everything that the table in docs/ shows")
    return parser


def http(url, timeout=2.0):
    """Status and text; status 0 without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def stalled(most=TOO_BUSY):
    """Says so if the machine stalled for more than `most` seconds."""
    return f"the machine stalled for {STALLS.worst:.1f} s" if STALLS.worst > most else ""


class Verdict:
    """Collects what is not as stated."""

    def __init__(self):
        self.failed = 0

    def expect(self, holds, what):
        if not holds:
            self.failed += 1
            print(f"FAILED  {what}", flush=True)

    def expect_unless(self, disturbed, holds, what):
        """`disturbed`: why the machine was too busy to decide; empty: it was not."""
        if not holds and disturbed:
            print(f"inconclusive {what}; {disturbed}", flush=True)
        else:
            self.expect(holds, what)

    def expect_in_time(self, holds, what, stall=TOO_BUSY):
        """`stall`: the longest one, in seconds, that explains nothing."""
        self.expect_unless(stalled(stall), holds, what)

    def exit(self):
        print(f"{self.failed} failed")
        sys.exit(self.failed > 0)


def words_of(*command):
    """A command in Redis' protocol."""
    raw = [str(word).encode() for word in command]
    return b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in raw)


def redis_call(port, *words, password=None, timeout=5.0):
    """Sends one command on a new connection; returns the raw answer."""
    text = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        for command in ([("AUTH", password)] if password else []) + [words]:
            connection.sendall(words_of(*command))
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
        words = ["--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--enable-debug-command", "yes",
                 "--save", "", "--logfile", self.folder / "log", *self.options]
        if self.program == "redis-sentinel":
            config = self.folder / "sentinel.conf"
            config.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n" + "\n".join(self.options))
            words = [config, "--logfile", self.folder / "log"]
        self.process = subprocess.Popen([self.program, *map(str, words)], stdout=subprocess.DEVNULL)
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


def in_file(path, url):
    """A URL with a password as an option, which the process list does not show."""
    path.write_text(url)
    path.chmod(0o600)
    return f"@{path}"


class Program:
    """lockbench as a process, with the times of its lines."""

    def __init__(self, words, folder, said=None):
        self.said = [] if said is None else said  # (seconds since the epoch, line)
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, cwd=folder)
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for line in self.process.stderr:
            self.said.append((time.time(), line.strip()))

    def says(self, text):
        """When it said so; None: never."""
        return next((at for at, line in list(self.said) if text in line), None)

    def expect_line(self, text):
        """Waits until it says so."""
        eventually(f"lockbench says {text!r}", lambda: self.says(text) or self.process.poll() is not None)
        if not self.says(text):
            raise RuntimeError(f"lockbench ended with {self.process.poll()}: {self.said}")

    def wait(self, seconds):
        code = self.process.wait(seconds)
        self.listener.join(seconds)
        return code

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.kill()


@dataclasses.dataclass
class Alert:
    """An alert that fires, or did."""

    name: str
    severity: str
    family: str
    first: float  # seconds since the epoch
    last: float
    times: int = 1
    summaries: list = dataclasses.field(default_factory=list)


class Prometheus:
    """A Prometheus with the shipped configuration, but with these targets: ports by job."""

    SHIPPED = {"lockbench-probe": 9465, "lockbench-watch": 9466}

    def __init__(self, folder, root, ports):
        folder.mkdir()
        rules = root / "dashboards/prometheus"
        text = (rules / "prometheus.yml").read_text()
        for name in ("recording.yml", "alerts.yml"):
            text = text.replace(f"- {name}", f"- {rules / name}")
        for job, shipped in self.SHIPPED.items():
            targets = ", ".join(f"'127.0.0.1:{port}'" for port in ports.get(job, []))
            text = text.replace(f"['127.0.0.1:{shipped}']", f"[{targets}]")
        (folder / "prometheus.yml").write_text(text)
        self.port = free_port()
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"])
        self.firing = {}  # (port, alert, strategy or family) to Alert
        self.watched_at = 0.0

    def watch(self):
        status, text = http(f"http://127.0.0.1:{self.port}/api/v1/alerts")
        self.watched_at = now = time.time()
        for alert in json.loads(text)["data"]["alerts"] if status == 200 else []:
            labels = alert["labels"]
            if alert["state"] != "firing" or "instance" not in labels:
                continue
            port, family = int(labels["instance"].rsplit(":", 1)[1]), labels.get("family", "")
            one = self.firing.setdefault(
                (port, labels["alertname"], labels.get("strategy", family)),
                Alert(labels["alertname"], labels["severity"], family, first=now, last=now))
            one.times += now - one.last > EVALUATION_SECONDS / 2
            one.last = now
            summary = alert["annotations"]["summary"]
            if summary not in one.summaries:
                one.summaries.append(summary)

    def alerts_of(self, port):
        """In order of their start."""
        found = [alert for (where, _, _), alert in self.firing.items() if where == port]
        return sorted(found, key=lambda one: one.first)

    def median(self, expression):
        """Of its series' values now."""
        query = urllib.parse.urlencode({"query": f"quantile(0.5, {expression})"})
        status, text = http(f"http://127.0.0.1:{self.port}/api/v1/query?{query}")
        found = json.loads(text)["data"]["result"] if status == 200 else []
        return float(found[0]["value"][1]) if found else math.nan

    def stop(self):
        self.process.terminate()
        self.process.wait()


def after(moment, start):
    return f"{moment - start:.0f} s"
