#!/usr/bin/env python3
"""Do memory, descriptors and threads of lockbench stay constant? Runs a probe of a Redis that is killed each minute and
comes back five seconds later, and next to it a run of 200 clients on a private server. Samples both each 10 s
(--sample-seconds), and prints a table of each minute and the growth per hour of each figure with a 95 % interval. A
figure is flat if that interval begins at or below the allowed growth: 2 % of its mean, or one descriptor or thread. The
first fifth is left out: connections, histograms and the allocator's pools grow to their size then. Exits 1 if a figure
is not flat or a program failed.
Usage: soak.py [--probe-minutes 45] [--run-minutes 30] [--clients 200] [--lockbench build/release/lockbench]"""

import argparse
import math
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

KILL_SECONDS = 60
DOWN_SECONDS = 5
FIGURES = {"rss_kib": "resident memory in KiB", "descriptors": "open descriptors", "threads": "threads"}
PROBED = ["redis-queue", "redis-fenced", "redis-watchdog", "redis-read-write", "redis-reentrant-notify"]
RUN = "redis-queue"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Redis:
    """A server that keeps its data when killed, so that fencing numbers keep growing."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
             "--appendonly", "yes", "--appendfsync", "always", "--logfile", self.folder / "log"], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"redis-server does not answer; see {self.folder}/log")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Soaked:
    """One lockbench and its samples."""

    def __init__(self, name, command, folder, minutes):
        self.name, self.minutes, self.samples, self.folder = name, minutes, [], folder
        self.said = open(folder / f"{name}.log", "wb")
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.said, stderr=self.said)
        self.begun = time.monotonic()

    def runs(self):
        return self.process.poll() is None

    def sample(self):
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        self.samples.append({"seconds": time.monotonic() - self.begun,
                             "rss_kib": int(status["VmRSS"].split()[0]),
                             "descriptors": len(os.listdir(f"/proc/{self.process.pid}/fd")),
                             "threads": int(status["Threads"])})

    def end(self):
        """Exit code and the end of its output."""
        if self.runs():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.said.close()
        return code, (self.folder / f"{self.name}.log").read_text(errors="replace")[-2000:]


def slope(times, values):
    """Growth per hour with the half width of its 95 % interval. Neighbouring samples are correlated, so the scatter is
    estimated from the means of ten blocks."""
    blocks = 10
    size = len(times) // blocks
    if size == 0:
        raise ValueError("too few samples")
    cut = [slice(i * size, (i + 1) * size) for i in range(blocks)]
    x = [statistics.fmean(times[part]) / 3600 for part in cut]
    y = [statistics.fmean(values[part]) for part in cut]
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    growth = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / spread
    residual = sum((b - mean_y - growth * (a - mean_x)) ** 2 for a, b in zip(x, y))
    t_of_eight = 2.306
    return growth, t_of_eight * math.sqrt(residual / (blocks - 2) / spread)


def judge(soaked, sample_seconds):
    """Prints samples and growth; returns whether all figures are flat."""
    print(f"\n{soaked.name}: {len(soaked.samples)} samples in {soaked.samples[-1]['seconds'] / 60:.1f} min")
    print(f"{'min':>6} " + " ".join(f"{name:>12}" for name in FIGURES))
    for one in soaked.samples[::max(1, round(60 / sample_seconds))]:
        print(f"{one['seconds'] / 60:6.1f} " + " ".join(f"{one[name]:12d}" for name in FIGURES))
    late = soaked.samples[len(soaked.samples) // 5:]
    all_flat = True
    for name, meaning in FIGURES.items():
        values = [one[name] for one in late]
        growth, half = slope([one["seconds"] for one in late], values)
        allowed = 0.02 * statistics.fmean(values) if name == "rss_kib" else 1
        flat = growth - half <= allowed
        all_flat = all_flat and flat
        print(f"{meaning}: mean {statistics.fmean(values):.0f}, largest {max(values)}, growth per hour "
              f"{growth:+.1f} ({growth - half:+.1f} to {growth + half:+.1f}), allowed {allowed:.0f}: "
              f"{'flat' if flat else 'NOT FLAT'}")
    return all_flat


def soak(options, folder):
    redis = Redis(folder / "redis")
    rate = str(options.rate)
    programs = [
        Soaked("probe", [options.lockbench, "probe", *PROBED, "--redis", f"redis://127.0.0.1:{redis.port}", "--rate", rate,
                         "--metrics-listen", f"127.0.0.1:{free_port()}"], folder, options.probe_minutes),
        Soaked("run", [options.lockbench, "run", RUN, "--clients", str(options.clients), "--duration",
                       f"{options.run_minutes * 60:.0f}s", "--out", "run.json", "--quiet"], folder, options.run_minutes)]
    begun = time.monotonic()
    kills, down_until, next_sample = 0, None, begun + options.sample_seconds
    try:
        while True:
            now = time.monotonic()
            minutes = (now - begun) / 60
            if minutes >= max(one.minutes for one in programs):
                break
            if down_until and now >= down_until:
                redis.start()
                down_until = None
            if not down_until and now >= begun + (kills + 1) * KILL_SECONDS:
                redis.kill()
                kills, down_until = kills + 1, now + DOWN_SECONDS
            if now >= next_sample:
                next_sample += options.sample_seconds
                for one in programs:
                    if one.runs() and minutes < one.minutes:
                        one.sample()
            time.sleep(0.2)
    finally:
        ends = [(one, *one.end()) for one in programs]
        redis.kill()
    print(f"the probe's store was killed {kills} times")
    good = True
    for one, code, said in ends:
        # A stopped probe exits with 0 regardless of its store; an invalid saturated run is not a failure.
        if code not in (0, 105):
            print(f"{one.name} ended with {code}: {said}")
            good = False
        good = judge(one, options.sample_seconds) and good
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe-minutes", type=float, default=45)
    parser.add_argument("--run-minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rate", type=float, default=20, help="of the probe, for each strategy")
    parser.add_argument("--sample-seconds", type=float, default=10)
    parser.add_argument("--lockbench", type=pathlib.Path, default=pathlib.Path("build/release/lockbench"))
    options = parser.parse_args()
    options.lockbench = options.lockbench.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lockbench-soak-"))
    try:
        good = soak(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\nflat" if good else "\nNOT flat")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
