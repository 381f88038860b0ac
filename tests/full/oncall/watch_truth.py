#!/usr/bin/env python3
"""Is what `lockbench watch` says of Redis true? Plays applications that log what they do, at several rates, with and
without keyspace notifications, each on its own server, and compares the watch's figures with that log. Prints the table
in docs/watch.md. Each line takes --seconds; exits with 1 if a figure claims more than was true.
Usage: watch_truth.py [--lockbench FILE] [--seconds N] [--rates N,...] [--modes notifications,tracking,...] [--keep]"""

import argparse
import collections
import heapq
import json
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

RELEASE = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0"
RENEW = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0"
MODES = {  # flags of notify-keyspace-events, arguments of the watch
    "notifications": ("KA", []),
    "tracking": ("", []),
    "SCAN": ("", ["no tracking"]),
}
WATCHER = ("watcher on >hunter2 ~* &* +pttl +get +getrange +hscan +type +llen +zcard +scan +ping +select +subscribe "
           "+pubsub|numsub +client|id +config|get")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Redis:
    def __init__(self, folder, flags):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", folder, "--save", "",
             "--notify-keyspace-events", flags], stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise RuntimeError("redis-server does not answer")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unread = 0
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        while self.socket.recv(1 << 16):
            pass

    def send(self, *commands):
        text = b""
        for words in commands:
            raw = [str(word).encode() for word in words]
            text += b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in raw)
        if text:
            self.socket.sendall(text)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Family:
    def __init__(self):
        self.acquired = self.released = self.renewed = self.expired = self.taken_over = self.stolen = 0
        self.holds = []


class Application:
    """Takes and gives back locks at given times, over one connection, so that the server keeps the order."""

    def __init__(self, redis, rate, seed):
        self.redis, self.random = redis, random.Random(seed)
        self.due, self.number = [], 0
        self.families = collections.defaultdict(Family)
        self.free = {"order": [f"lock:order:{i}" for i in range(max(200, rate // 4))]}
        self.rate, self.batch = rate, []
        self.next_order = 0
        self.held = {}  # (family, token, since) by key

    def at(self, when, action, *arguments):
        self.number += 1
        heapq.heappush(self.due, (when, self.number, action, arguments))

    def grant(self, when, family, key, ttl):
        token = str(uuid.UUID(int=self.random.getrandbits(128)))
        self.batch.append(("SET", key, token, "NX", "PX", ttl))
        self.families[family].acquired += 1
        self.held[key] = family, token, when
        return token

    def release(self, when, key):
        family, token, since = self.held.pop(key)
        self.batch.append(("EVAL", RELEASE, 1, key, token))
        self.families[family].released += 1
        self.families[family].holds.append(when - since)
        if family in self.free:
            self.free[family].append(key)

    def order(self, when):
        """Most locks: taken at random times, held for 30 ms on average."""
        self.next_order += self.random.expovariate(self.rate)
        self.at(self.next_order, self.order)
        keys = self.free["order"]
        if not keys:
            return
        place = self.random.randrange(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        key = keys.pop()
        self.grant(when, "order", key, 30000)
        self.at(when + max(0.002, self.random.expovariate(1 / 0.03)), self.release, key)

    def job(self, when, key):
        """Renewed locks: held for 2 s, renewed every 300 ms."""
        token = self.grant(when, "job", key, 1500)
        for beat in range(1, 7):
            self.at(when + 0.3 * beat, self.renew, key, token)
        self.at(when + 2, self.release, key)
        self.at(when + 2.2, self.job, key)

    def renew(self, when, key, token):
        self.batch.append(("EVAL", RENEW, 1, key, token, 1500))
        self.families["job"].renewed += 1

    def hot(self, when):
        """One lock that always has a next client: it is granted 1 ms after its release."""
        self.grant(when, "hot", "lock:hot:1", 30000)
        self.at(when + 0.2, self.release, "lock:hot:1")
        self.at(when + 0.201, self.hot)

    def dead(self, when, number):
        """A client that dies: its lock ends by expiry after 400 ms."""
        self.grant(when, "dead", f"lock:dead:{number}", 400)
        del self.held[f"lock:dead:{number}"]
        self.families["dead"].expired += 1
        self.at(when + 1, self.dead, number + 1)

    def faults(self, when):
        """An overwritten lock, and one that expires under its holder and is taken by another client."""
        self.batch.append(("SET", "lock:stolen:1", "first", "NX", "PX", 30000))
        self.batch.append(("SET", "lock:over:1", "first", "NX", "PX", 700))
        self.families["stolen"].acquired += 2
        self.families["stolen"].stolen += 1
        self.families["over"].acquired += 2
        self.families["over"].expired += 1
        self.families["over"].taken_over += 1
        self.at(when + 1, lambda at: self.batch.append(("SET", "lock:stolen:1", "thief", "PX", 30000)))
        self.at(when + 0.9, lambda at: self.batch.append(("SET", "lock:over:1", "second", "NX", "PX", 30000)))
        self.at(when + 2, self.end_faults)

    def end_faults(self, when):
        self.batch += [("DEL", "lock:stolen:1"), ("DEL", "lock:over:1")]
        self.families["stolen"].released += 1
        self.families["over"].released += 1

    def play(self, seconds):
        begun = time.monotonic()
        self.at(0, self.order)
        self.at(0.5, self.faults)
        self.at(0, self.hot)
        self.at(0, self.dead, 0)
        for i in range(5):
            self.at(0.1 * i, self.job, f"lock:job:{i}")
        while True:
            now = time.monotonic() - begun
            if now >= seconds:
                break
            while self.due and self.due[0][0] <= now:
                _, _, action, arguments = heapq.heappop(self.due)
                action(now, *arguments)
            self.redis.send(*self.batch)
            self.batch = []
            next_at = min(self.due[0][0] if self.due else seconds, seconds)
            time.sleep(max(0.0002, min(next_at - (time.monotonic() - begun), 0.01)))
        for key in list(self.held):
            self.release(now, key)
        self.redis.send(*self.batch)


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else None


def shown_time(value):
    if value is None:
        return "–"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def play(given, mode, rate, folder):
    flags, without = MODES[mode]
    redis = Redis(folder, flags)
    try:
        url = f"redis://127.0.0.1:{redis.port}"
        if without:
            redis.send(("ACL", "SETUSER", *WATCHER.split()))
            url = f"redis://watcher:hunter2@127.0.0.1:{redis.port}"
        result = pathlib.Path(folder) / "seen.json"
        watch = subprocess.Popen(
            [given.lockbench, "watch", "--redis", url, "--locks", "lock:*", "--name", "lock:(?<family>[a-z]+):.*",
             "--duration", f"{given.seconds + 4}s", "--no-screen", "--record", result],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        application = Application(redis, rate, 7)
        application.play(given.seconds)
        _, said = watch.communicate(timeout=60)
        if given.keep:
            print(said, file=sys.stderr)
        return application.families, json.loads(result.read_text())
    finally:
        redis.stop()


def line(mode, rate, truth, seen, wrong):
    families = {one["family"]: one for one in seen["observed"]}
    source = seen["sources"][0]
    marks = {"exact": "", "at_least": "≥ ", "sampled": "~ "}

    def total(of):
        return sum(getattr(one, of) for one in truth.values())

    def said(key):
        return sum(one[key] for one in families.values())

    def pair(key, of):
        true, figure = total(of), said(key)
        if figure > true:
            wrong.append(f"{mode}, {rate}/s: {key}: {figure}, but {true} happened")
        return f"{figure:,} of {true:,}"

    def one(family, key):
        return families.get(family, {}).get(key, 0)

    order = families.get("order", {"accuracy": "sampled"})
    hold = order.get("hold") or {}
    hold_p50 = hold.get("p50") if hold.get("count") else None
    true_p50 = percentile(truth["order"].holds, 0.5)
    if hold_p50 and not 0.8 * true_p50 < hold_p50 < 1.25 * true_p50 and order.get("hold_share", 1) >= 0.9:
        wrong.append(f"{mode}, {rate}/s: hold p50 {shown_time(hold_p50)}, but {shown_time(true_p50)} was true")
    acquired = total("acquired")
    cells = [mode, f"{rate:,}", order["accuracy"], pair("acquisitions", "acquired"), pair("releases", "released"),
             pair("renewals", "renewed"), pair("expired_while_held", "expired"), pair("taken_over", "taken_over"),
             pair("owner_changed", "stolen"), f"{shown_time(hold_p50)} of {shown_time(true_p50)}",
             f"{order.get('hold_share', float('nan')):.0%}", f"{order.get('owner_share', float('nan')):.0%}",
             f"{source['missed']:,}", f"{source['commands'] / acquired:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    home = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockbench", type=pathlib.Path, default=home / "build/release/lockbench")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rates", default="10,100,1000,3000")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--keep", action="store_true", help="show what the watch says")
    given = parser.parse_args()
    wrong = []
    print("| mode | grants/s | accuracy | acquired | released | renewed | expired | taken over | stolen | hold p50 | "
          "lengths seen | owners seen | missed | commands per grant |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for mode in given.modes.split(","):
        for rate in map(int, given.rates.split(",")):
            with tempfile.TemporaryDirectory(prefix="lockbench-truth-") as folder:
                truth, seen = play(given, mode, rate, folder)
                print(line(mode, rate, truth, seen, wrong), flush=True)
    for text in wrong:
        print(text, file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
