#!/usr/bin/python3
"""Does what `lockbench choose` answers hold? Runs each file of choose/code on real servers, and follows the whole
answers (settings, code, conditions) to five questions of users, with the faults of each.
Usage: answers.py LOCKBENCH [NAME]: only the tests whose name contains NAME."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import clients
from judging import STALLS, TOO_BUSY
from servers import PATIENCE, Servers, eventually

LOCKBENCH = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
CODE = f"{ROOT}/choose/code"
WAIT = 1  # seconds
TTL = {"mutex": 30, "once": 30, "leader": 3}

MAKE = {
    "sql": clients.sql,
    "py": clients.python,
    "go": clients.go,
    "java": clients.curator,
    "mjs": lambda folder, code, use: clients.node(folder, code, use, f"{ROOT}/clients/node/node_modules"),
}


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


class Inconclusive(Exception):
    """The machine was too busy to decide."""


def expect_in_time(holds, what):
    """For upper bounds in real time, and rates."""
    if not holds and STALLS.worst > TOO_BUSY:
        raise Inconclusive(f"{what}; the machine stalled for {STALLS.worst:.1f} s")
    expect(holds, what)


class Crowd:
    """Processes that run the same code, and the log of their work."""

    def __init__(self, command, url, folder, name):
        self.command, self.url, self.name = command, url, name
        self.log = os.path.join(folder, f"{name.strip('/')}.log")
        self.errors = open(f"{self.log}.errors", "ab")
        self.processes = []

    def start(self, until="/"):
        """Its work lasts until this file is there."""
        process = subprocess.Popen([*self.command, self.url, self.name, f"{self.name}-done", self.log, until],
                                   stdout=self.errors, stderr=self.errors)
        self.processes.append(process)
        return process

    def start_holder(self):
        """A process that works until release()."""
        process = self.start(until=f"{self.log}.release")
        eventually(f"{self.name}: {process.pid} works", lambda: (process.pid, "begin") in [n[1:] for n in self.notes()])
        return process

    def release(self):
        with open(f"{self.log}.release", "w", encoding="ascii"):
            pass

    def notes(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="ascii") as file:
            lines = [line.split() for line in file if line.endswith("\n")]
        return sorted((float(at), int(process), word) for at, process, word in lines)

    def count(self, word):
        return sum(note[2] == word for note in self.notes())

    def finish(self, process):
        return process.wait(timeout=PATIENCE)

    def expect_one_at_a_time(self):
        holder = None
        for at, process, word in self.notes():
            expect(word == "end" or holder is None, f"{self.name}: {process} began at {at} while {holder} worked")
            holder = process if word == "begin" else None

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.errors.close()


def with_values(text, use, wait):
    for name, value in (("ttl", TTL[use]), ("wait", wait)):
        text = text.replace(f"{{{name}_ms}}", str(1000 * value)).replace(f"{{{name}_s}}", str(value))
    return text


class Tests:
    def __init__(self, folder):
        self.folder = folder
        self.servers = Servers(folder)
        self.known = {}
        self.crowds = []
        self.number = 0

    def url(self, store):
        if store not in self.known:
            self.known[store] = {
                "postgres": lambda: self.servers.postgres({}),
                "redis": self.servers.redis,
                "redlock": lambda: ",".join(self.servers.redis() for _ in range(3)),
                "etcd": lambda: ",".join(self.servers.etcd(1)[0]),
                "zookeeper": self.servers.zookeeper,
            }[store]()
        return self.known[store]

    def crowd(self, extension, code, use, url):
        self.number += 1
        folder = os.path.join(self.folder, f"client{self.number}")
        os.makedirs(folder)
        command = MAKE[extension](folder, code, use)
        one = Crowd(command, url, self.folder, f"/name{self.number}")
        self.crowds.append(one)
        return one

    # Each file of choose/code does what its use promises.

    def file(self, name):
        strategy, use, extension = name.split(".")
        with open(os.path.join(CODE, name), encoding="utf-8") as file:
            text = file.read()
        expect(len(text.splitlines()) <= 10, f"{name} is too long for an answer")
        if strategy == "redis-reentrant-notify":
            return clients.redisson(os.path.join(self.folder, name), with_values(text, use, WAIT), use)
        url = self.url(strategy.split("-")[0])
        return getattr(self, use)(lambda wait=WAIT: self.crowd(extension, with_values(text, use, wait), use, url))

    def mutex(self, crowd):
        brief = crowd()
        holder = brief.start_holder()
        expect(brief.finish(brief.start()) != 0, "a client that waited in vain must say so")
        brief.release()
        expect(brief.finish(holder) == 0 and brief.count("begin") == 1, "nobody else worked")
        patient = crowd(wait=PATIENCE)
        many = [patient.start() for _ in range(3)]
        expect([patient.finish(one) for one in many] == [0, 0, 0], "all get the lock in the end")
        expect(patient.count("end") == 3, "all worked")
        patient.expect_one_at_a_time()
        failing = crowd(wait=TTL["mutex"] // 2)  # so that its expiry frees no lock
        failing.start(until="/fail")
        eventually("the work fails", lambda: failing.count("failed") == 1)
        expect(failing.finish(failing.start()) == 0, "failed work keeps no lock on a connection that stays")
        kept = sum(one.count("kept") for one in (brief, patient, failing))
        expect(kept == 0, "a connection that goes back to its pool has no lock and no setting")

    def once(self, crowd):
        job = crowd()
        first = job.start_holder()
        expect([job.finish(one) for one in [job.start() for _ in range(2)]] == [0, 0], "to skip is no error")
        job.release()
        expect(job.finish(first) == 0, "the job ran")
        expect(job.finish(job.start()) == 0, "to skip is no error")
        expect(job.count("begin") == 1, f"the job ran {job.count('begin')} times")
        failing = crowd()
        failing.start(until="/fail")
        eventually("the job fails", lambda: failing.count("failed") == 1)
        expect(failing.finish(failing.start()) == 0 and failing.count("end") == 1, "a job that failed runs again")
        expect(job.count("kept") + failing.count("kept") == 0, "a connection that goes back to its pool has no lock")

    def leader(self, crowd):
        """Returns how long nobody led after the leader's crash."""
        post = crowd()
        first = post.start_holder()
        others = [post.start(until="/never") for _ in range(2)]
        time.sleep(2)  # nobody else may lead meanwhile
        expect(post.count("begin") == 1, "two lead")
        killed = time.monotonic()
        first.kill()
        eventually("another leads", lambda: post.count("begin") == 2)
        expect(post.notes()[-1][1] in [one.pid for one in others], "one of the others leads")
        return post.notes()[-1][0] - killed

    # The questions of users.

    def choose(self, *arguments, code=0):
        done = subprocess.run([LOCKBENCH, "choose", *arguments, "--format", "json"], capture_output=True, text=True,
                              check=False)
        expect(done.returncode == code, f"choose ended with {done.returncode}: {done.stderr}")
        brief = subprocess.run([LOCKBENCH, "choose", *arguments], capture_output=True, text=True, check=False).stdout
        print(brief, flush=True)
        expect(len(brief.splitlines()) <= 25, f"the answer has {len(brief.splitlines())} lines")
        answer = json.loads(done.stdout)
        answer["best"] = answer["qualify"][0]
        return answer

    def lockbench(self, *arguments):
        out = os.path.join(self.folder, "result.json")
        done = subprocess.run([LOCKBENCH, *arguments, "--out", out, "--quiet"], capture_output=True, text=True,
                              check=False, cwd=self.folder)
        expect(done.returncode == 0, f"{' '.join(arguments)}: {done.returncode}: {done.stderr}")
        with open(out, encoding="utf-8") as file:
            return json.load(file)

    def checked(self, answer, *more):
        """The run that the answer proposes."""
        words = [word.strip("'") for word in answer["check"].split()[1:]]
        return self.lockbench(*words, "--duration", "5s", *more)["runs"][0]

    def many_clients(self):
        """300 clients, 50 keys, clients crash and pause for 2 s; Redis and PostgreSQL are there."""
        question = ["--stores", "redis,postgres", "--clients", "300", "--keys", "50", "--rate", "1500",
                    "--work-time-p50", "8ms", "--work-time-p99", "15ms", "--survive", "crash", "--pause", "2s"]
        answer = self.choose(*question)
        expect(answer["best"]["strategy"] == "postgres-advisory", "its queue is the fastest")
        needs = " ".join(one["text"] for one in answer["best"]["needs"])
        most = int(re.search(r"max_connections of at least (\d+)", needs)[1])
        keepalives = dict(re.findall(r"(tcp_keepalives_\w+) = (\d+)", answer["settings"][0]["because"]))
        # A server as it is by default does not meet the conditions, and one as the answer wants it does.
        for settings, kept in (({}, False), ({"max_connections": most + 10, **keepalives}, True)):
            url = self.servers.postgres(settings)
            needs = self.choose(*question, "--postgres", url)["best"]["needs"]
            expect([one["kept"] for one in needs] == [kept, True], f"the server's conditions: {needs}")
        run = self.checked(answer, "--postgres", url)
        expect_in_time(run["outcomes"]["acquired"] > 0.95 * 1500 * 5, "the load is carried")
        expect_in_time(run["outcomes"].get("timed_out", 0) < 0.01 * run["outcomes"]["acquired"],
                       "the acquire timeout suffices")
        expect_in_time(run["acquire"]["p99"] < 1, "and its waits are short")
        # Its code, with crashes and pauses.
        (sql,) = answer["code"]
        crowd = self.crowd("sql", sql["text"], "mutex", url)
        victim = crowd.start_holder()
        others = [crowd.start() for _ in range(8)]
        victim.kill()
        paused = crowd.start_holder()
        paused.send_signal(signal.SIGSTOP)
        others += [crowd.start() for _ in range(4)]
        time.sleep(2)  # the pause that the lock must survive
        paused.send_signal(signal.SIGCONT)
        crowd.release()
        expect([crowd.finish(one) for one in [paused, *others]] == [0] * 13, "all others get the lock in time")
        survivors = [note for note in crowd.notes() if note[1] != victim.pid]
        holder = None
        for _, process, word in survivors:
            expect(word == "end" or holder is None, "two hold the lock")
            holder = process if word == "begin" else None

    def nightly_job(self):
        """A nightly job that must not run twice; Redis or PostgreSQL."""
        answer = self.choose("--for", "once", "--stores", "redis,postgres")
        expect(answer["settings"][-1]["option"] == "done-marker", "a lock alone does not do it")
        (sql,) = answer["code"]
        job = self.crowd("sql", sql["text"], "once", self.url("postgres"))
        crashed = job.start_holder()
        crashed.kill()
        crashed.wait()
        second = job.start_holder()
        for one in [job.start() for _ in range(3)]:
            expect(job.finish(one) == 0, "others skip it")
        job.release()
        expect(job.finish(second) == 0, "it runs again")
        job.finish(job.start())
        expect(job.count("end") == 1, "it ran to its end once")

    def leader_of_three(self):
        """One leader among three processes, with etcd; also when a member fails."""
        answer = self.choose("--for", "leader", "--stores", "etcd", "--clients", "3", "--failover", "5s", "--language",
                             "go")
        expect("three members" in answer["best"]["needs"][0]["text"], "one may fail")
        urls, members = self.servers.etcd(3)
        (code,) = answer["code"]
        longest = {one["after"]: self.seconds(one["text"]) for one in answer["takeovers"]}
        waited = self.leader(lambda: self.crowd("go", code["text"], "leader", ",".join(urls)))
        expect_in_time(waited < longest["a crash"] + 0.5, f"another led after {waited} s, not {longest['a crash']} s")
        crowd = self.crowds[-1]
        leads = crowd.notes()[-1][1]
        # Another crash, of the leader and of a member at once.
        members[self.servers.etcd_leader(urls)].kill()
        next(one for one in crowd.processes if one.pid == leads).kill()
        killed = time.monotonic()
        eventually("another leads", lambda: crowd.notes()[-1][1] != leads)
        waited = crowd.notes()[-1][0] - killed
        bound = longest["a crash while the servers elect their own leader"]
        expect_in_time(waited < bound + 0.5, f"another led after {waited} s, not {bound} s")

    @staticmethod
    def seconds(text):
        """The last duration of a sentence up to its colon."""
        value, unit = re.findall(r"([\d.]+) (ms|s)\b", text.split(":")[0])[-1]
        return float(value) * (0.001 if unit == "ms" else 1)

    def redisson_today(self):
        """Redisson on one Redis with Sentinel: what can go wrong, what does it cost, is there better?"""
        answer = self.choose("--today", "redisson", "--survive", "failover,pause", "--language", "java")
        (today,) = [one for one in answer["ruled_out"] if one["strategy"] == "redis-reentrant-notify"]
        said = [one["text"].split(": ")[:2] for one in today["against"]]
        expect(["--survive failover", "--survive pause"] == [one["requirement"] for one in today["against"]], said)
        for scenario, outcome in said:
            played = self.lockbench("hazards", scenario, "--strategies", "redis-reentrant-notify")["hazards"]
            expect(played[0]["observed"] == outcome, f"{scenario} is {played[0]['observed']}, not {outcome}")
        better = answer["best"]["strategy"]
        plays = self.lockbench("hazards", "failover", "pause-holding-fenced", "--strategies", better)["hazards"]
        expect([one["observed"] for one in plays] == ["safe", "safe"], f"{better}: {plays}")

    def next_year(self):
        """The first question at four times the rate."""
        question = ["--stores", "redis,postgres", "--clients", "1200", "--keys", "50", "--rate", "6000",
                    "--work-time-p50", "8ms", "--work-time-p99", "15ms", "--survive", "crash", "--pause", "2s"]
        answer = self.choose(*question, code=99)
        keys = int(re.search(r"(\d+) keys would do", answer["too_busy"])[1])
        # A quarter of it, so that two cores suffice: the locks are as busy.
        load = ["--clients", "300", "--rate", "1500", "--hold", "lognormal(8ms,15ms)", "--acquire-timeout", "5s"]
        url = self.servers.postgres({"max_connections": 310})
        runs = [self.lockbench("run", "postgres-advisory", *load, "--keys", str(number), "--duration", "8s",
                               "--postgres", url)["runs"][0] for number in (round(keys / 4), round(50 / 4))]
        kept, lost = (one["acquire"]["p99"] for one in runs)
        expect_in_time(kept < 0.5, f"with {keys} keys p99 is {kept} s")
        expect_in_time(lost > 2 * kept, f"with 50 keys p99 is {lost} s, not much above {kept} s")

    def all(self):
        files = [(f"code {name}", lambda name=name: self.file(name)) for name in sorted(os.listdir(CODE))]
        questions = [(one.__name__, one) for one in (self.many_clients, self.nightly_job, self.leader_of_three,
                                                     self.redisson_today, self.next_year)]
        return [(name, run) for name, run in files + questions if ONLY in name]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end, too
    folder = tempfile.mkdtemp(prefix="lockbench-answers-")
    os.chmod(folder, 0o755)
    subprocess.run([f"{ROOT}/clients/install", "node"], check=True, stdout=subprocess.DEVNULL)
    tests = Tests(folder)
    failed = 0
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(tests.servers.stop)
        stack.callback(lambda: [crowd.stop() for crowd in tests.crowds])
        for name, run in tests.all():
            begun = time.monotonic()
            STALLS.worst = 0
            try:
                run()
                print(f"ok      {name} ({time.monotonic() - begun:.1f} s)", flush=True)
            except Inconclusive as why:
                print(f"inconclusive {name}: {why}", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError, LookupError, ValueError) as problem:
                failed += 1
                print(f"FAILED  {name}: {problem}", flush=True)
                for crowd in tests.crowds:
                    with open(crowd.errors.name, encoding="utf-8", errors="replace") as file:
                        print(file.read()[-2000:], flush=True)
            for crowd in tests.crowds:
                crowd.stop()
            tests.crowds.clear()
    print(f"{failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
