#!/usr/bin/python3
"""Do the shipped clients and the examples of docs/your-lock.md keep the promises of that page, on private servers?
Usage: adapters.py [NAME [-v]]: only the clients whose name contains NAME; -v: with the time of each promise."""
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../../..")
sys.path.insert(0, os.path.join(HERE, "../answers"))
from servers import PATIENCE, Servers, eventually  # noqa: E402

CLIENTS = os.path.join(ROOT, "clients")
# Seconds; for the others 3. memcached counts whole seconds, and now and then two at once.
TTL = {"zookeeper": 4, "memcached": 6}
# What a library is known not to keep, by a part of the message. A promise that it keeps after all is a failure too.
KNOWN = {
    # The library passes tenacity 8 a function of its old interface, so it cannot wait.
    "python-etcd3": "wait() missing 1 required positional argument",
    "tooz-etcd": "wait() missing 1 required positional argument",
}
# As lockbench's own servers, the stores want a login.
REDIS_LOGIN = ["--user", "default", "off", "--user", "lockbench", "on", ">secret", "~*", "&*", "+@all"]
TRAITS = {"expiry", "fencing", "reentrant", "renews", "waiting", "quorum"}


class Pending:
    """A request, and its answer once there is one."""

    def __init__(self, sent):
        self.sent, self.answers, self.known = sent, queue.Queue(), None

    def answer(self, patience=PATIENCE):
        if self.known is None:
            self.known = self.answers.get(timeout=patience)
        return self.known

    def answered(self):
        return self.known is not None or not self.answers.empty()


class Process:
    """An adapter's process."""

    def __init__(self, command, hello, errors):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                        cwd=ROOT)
        self.pending, self.number, self.guard = {}, 0, threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()
        self.about = self.ask("hello", protocol=1, options={}, **hello).answer()

    def ask(self, do, **fields):
        with self.guard:
            request = {"id": self.number, "do": do, **fields}
            self.number += 1
            pending = self.pending[request["id"]] = Pending(request)
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        return pending

    def read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            self.pending[answer["id"]].answers.put(answer)

    def end(self):
        """Its exit code after the end of its input."""
        self.process.stdin.close()
        return self.process.wait(timeout=PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


class Broken(Exception):
    pass


class Trial:
    """One adapter on its store."""

    def __init__(self, name, command, store, url, errors):
        self.name, self.command, self.store, self.errors = name, command, store, errors
        self.ttl = 1000 * TTL.get(store, 3)
        self.hello = {"clients": 12, "stores": {store: url}, "ttl_ms": self.ttl}
        self.processes, self.key, self.log = [], "", []

    def start(self):
        self.processes.append(Process(self.command, self.hello, self.errors))
        return self.processes[-1]

    def stop(self):
        for process in self.processes:
            process.kill()

    def acquire(self, process, client, wait=0):
        return process.ask("acquire", client=client, key=self.key, ttl_ms=self.ttl, wait_ms=wait)

    def expect(self, pending, *outcomes):
        answer = pending.answer()
        if answer.get("outcome") not in outcomes:
            raise Broken(f"sent {pending.sent}, expected {' or '.join(outcomes)}, got {answer}")
        return answer

    def acquired_soon(self, process, client):
        """Libraries that do not wait are asked again."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            pending = self.acquire(process, client, wait=20000)
            if self.expect(pending, "acquired", "taken")["outcome"] == "acquired":
                return
            time.sleep(0.05)  # between two tries
        raise Broken(f"client {client} is not granted the lock within {PATIENCE} s")

    def release(self, process, client):
        return process.ask("release", client=client, key=self.key)

    # The promises, in this order. Each has a key of its own.

    def hello_says_what_it_is(self, one, _):
        about = one.about
        if about.get("store") != self.store or not about.get("name") or not about.get("version"):
            raise Broken(f"hello: {about}")
        if unknown := set(about.get("traits", {})) - TRAITS:
            raise Broken(f"hello has unknown traits: {unknown}")

    def an_echo_is_empty(self, one, _):
        pending = one.ask("echo")
        if set(pending.answer()) != {"id"}:
            raise Broken(f"echo: {pending.answer()}")

    def an_unknown_request_is_unsupported(self, one, _):
        self.expect(one.ask("dance", client=0, key=self.key), "unsupported")

    def a_held_lock_is_taken(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        self.expect(self.acquire(one, 1), "taken")
        self.expect(self.acquire(other, 0), "taken")
        self.expect(self.release(one, 0), "released")
        self.expect(self.acquire(other, 0), "acquired")
        self.expect(self.release(other, 0), "released")

    def the_holder_and_nobody_else_believes_that_it_holds(self, one, _):
        for holds in (False, True, False):
            pending = one.ask("held", client=0, key=self.key)
            if pending.answer().get("outcome") != "unsupported" and pending.answer().get("held") is not holds:
                raise Broken(f"held, expected {holds}: {pending.answer()}")
            if holds:
                self.expect(self.release(one, 0), "released")
            else:
                self.expect(self.acquire(one, 0), "acquired")
        self.expect(self.release(one, 0), "released")

    def a_strangers_release_frees_nothing(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        self.expect(self.release(one, 1), "not_held", "failed")
        self.expect(self.release(other, 0), "not_held", "failed")
        self.expect(self.acquire(other, 1), "taken")
        self.expect(self.release(one, 0), "released")

    def a_waiter_is_granted_the_lock_after_its_release(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        with ThreadPoolExecutor() as pool:
            waiter = pool.submit(self.acquired_soon, other, 0)
            self.expect(self.release(one, 0), "released")
            waiter.result()
        self.expect(self.release(other, 0), "released")

    def a_wait_ends(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        self.expect(self.acquire(other, 0, wait=300), "taken")
        self.expect(self.release(one, 0), "released")
        self.acquired_soon(other, 1)  # the waiter has left nothing behind
        self.expect(self.release(other, 1), "released")

    def clients_exclude_each_other(self, one, other):
        inside, most, guard = [], [], threading.Lock()

        def work(process, client):
            for _ in range(3):
                self.acquired_soon(process, client)
                with guard:
                    inside.append(client)
                    most.append(len(inside))
                process.ask("echo").answer()
                with guard:
                    inside.remove(client)
                self.expect(self.release(process, client), "released")

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work, process, client) for process in (one, other) for client in range(4)]:
                done.result()
        if len(most) != 24 or max(most) != 1:
            raise Broken(f"{len(most)} of 24 sections, at most {max(most, default=0)} at once")

    def a_cancelled_wait_ends_and_leaves_nothing(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        waiting = self.acquire(other, 0, wait=1000 * PATIENCE)
        self.expect(self.acquire(other, 1), "taken")  # likely the wait has begun meanwhile
        can_cancel, end = True, time.monotonic() + PATIENCE
        # One that reaches the store before the wait does nothing.
        while can_cancel and not waiting.answered() and time.monotonic() < end:
            cancel = other.ask("cancel", of=waiting.sent["id"])
            can_cancel = cancel.answer().get("outcome") != "unsupported"
            time.sleep(0.1)  # between two tries
        if can_cancel:
            self.expect(waiting, "failed", "taken")
        self.expect(self.release(one, 0), "released")
        if not can_cancel:
            if self.expect(waiting, "acquired", "taken")["outcome"] == "acquired":
                self.expect(self.release(other, 0), "released")
        self.acquired_soon(one, 1)
        self.expect(self.release(one, 1), "released")

    def a_renewal_prolongs_the_lock(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        renews = one.about["traits"].get("renews") or one.about["traits"]["expiry"] == "connection"
        until = time.monotonic() + 2.5 * self.ttl / 1000
        while time.monotonic() < until:
            if not renews:
                answer = one.ask("renew", client=0, key=self.key, ttl_ms=self.ttl).answer()
                if answer.get("outcome") == "unsupported":
                    break
                if answer.get("outcome") != "renewed":
                    raise Broken(f"renew: {answer}")
            time.sleep(self.ttl / 1000 / 5)  # a fifth of what it is renewed for
        self.expect(self.acquire(other, 0), "taken")
        self.expect(self.release(one, 0), "released")

    def a_killed_holders_lock_becomes_free(self, _, other):
        victim = self.start()
        self.expect(self.acquire(victim, 0), "acquired")
        victim.kill()
        self.acquired_soon(other, 0)
        self.expect(self.release(other, 0), "released")

    def a_closed_client_disturbs_no_other(self, one, _):
        self.expect(self.acquire(one, 0), "acquired")
        self.expect(self.acquire(one, 2), "taken")
        one.ask("close", client=2).answer()
        self.expect(self.release(one, 0), "released")
        self.expect(self.acquire(one, 2), "acquired")
        self.expect(self.release(one, 2), "released")

    def it_ends_with_its_input(self, one, other):
        self.expect(self.acquire(one, 0), "acquired")
        for process in (one, other):
            if code := process.end():
                raise Broken(f"exit code {code}")

    def promises(self):
        """The broken ones."""
        one, other, broken = self.start(), self.start(), []
        for name, promise in list(vars(Trial).items()):
            if "_" not in name or name.startswith("_") or name == "acquired_soon":
                continue
            self.key = f"lockbench:20261129T000000Z-c0ffee:{self.name}-{name}"
            begin = time.monotonic()
            try:
                promise(self, one, other)
            except (Broken, queue.Empty, subprocess.TimeoutExpired, BrokenPipeError) as problem:
                broken.append(f"{name}: {problem!r}")
            self.log.append(f"{name} {time.monotonic() - begin:.1f} s")
        return broken


def long_files():
    """Adapters have at most 80 lines, what those of a language share 60, and the examples of the page 40."""
    lengths = {"docs/your-lock.md": max(example.count("\n") for _, example in examples())}
    for folder, _, names in os.walk(CLIENTS):
        if "node_modules" not in folder:
            lengths |= {name: len(open(os.path.join(folder, name), encoding="utf-8").readlines())
                        for name in names if name.endswith((".py", ".mjs", ".java", ".go"))}
    most = {"docs/your-lock.md": 40, "adapter.py": 60, "adapter.mjs": 60, "Adapter.java": 60, "adapter.go": 60}
    return [f"{name} has {lines} lines" for name, lines in lengths.items() if lines > most.get(name, 80)]


def examples():
    """The complete clients of the page: file name and text."""
    with open(f"{ROOT}/docs/your-lock.md", encoding="utf-8") as page:
        blocks = re.findall(r"^```(python|js)\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
    return [({"python": "example.py", "js": "example.mjs"}[language], text) for language, text in blocks]


def shipped():
    """The clients by name: command and store. Installs what they need."""
    lines = subprocess.run([f"{CLIENTS}/install", "python", "node", "java", "go"], check=True, cwd=ROOT, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    commands = {name: command.split() for name, _, command in (line.partition("=") for line in lines)}
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(commands, zip(commands.values(), pool.map(store_of, commands.values()))))


def store_of(command):
    """By its answer to the first hello, which comes with addresses where nobody listens."""
    process = Process(command, {"clients": 0, "stores": {}, "ttl_ms": 10000}, subprocess.DEVNULL)
    process.end()
    return process.about["store"]


@contextlib.contextmanager
def private_servers(stores):
    """A folder, and the URLs of the stores by their names."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # PostgreSQL runs as another user
        servers = Servers(folder)
        signal.signal(signal.SIGTERM, lambda *_: (servers.stop(), os._exit(1)))  # adapters end with their input
        start = {"redis": lambda: with_login(servers.redis(*REDIS_LOGIN)), "postgres": lambda: servers.postgres({}),
                 "memcached": lambda: memcached(servers, folder), "etcd": lambda: etcd(servers),
                 "zookeeper": lambda: with_login(f"zk://{servers.zookeeper()}")}
        try:
            yield folder, {store: start[store]() for store in stores}
        finally:
            servers.stop()


def with_login(url, user="lockbench"):
    return url.replace("://", f"://{user}:secret@")


def memcached(servers, folder):
    with open(f"{folder}/users", "w", encoding="ascii") as file:
        file.write("lockbench:secret\n")
    return with_login(servers.memcached(f"--auth-file={folder}/users"))


def etcd(servers):
    (url,), _ = servers.etcd(1)
    for method, fields in (("user/add", {"name": "root", "password": "secret"}),
                           ("user/grant", {"user": "root", "role": "root"}), ("enable", {})):
        ask = urllib.request.Request(f"{url}/v3/auth/{method}", json.dumps(fields).encode())
        eventually(f"etcd: {method}", lambda: succeeds(ask))
    return with_login(url, "root")


def succeeds(ask):
    try:
        with urllib.request.urlopen(ask, timeout=PATIENCE):
            return True
    except urllib.error.URLError:  # also while etcd elects a leader
        return False


def judge(name, trial, errors):
    """Prints what it found; returns the promises that are broken against expectation."""
    try:
        broken = trial.promises()
    except Exception as problem:  # such as no answer to hello
        broken = [f"{type(problem).__name__}: {problem}"]
    trial.stop()
    known = [one for one in broken if name in KNOWN and KNOWN[name] in one]
    broken = [one for one in broken if one not in known]
    if name in KNOWN and not known:
        broken.append("keeps all promises, other than expected")
    errors.seek(0)
    said = errors.read()[-2000:].decode(errors="replace") if broken else ""
    note = f": {len(known)} promises are known to be broken" if known else ""
    lines = [f"{'FAILED' if broken else 'ok'} {name}{note}", *broken, *(trial.log if "-v" in sys.argv else ()), said]
    print("\n  ".join(lines).rstrip(), flush=True)
    return broken


def main():
    failures = long_files()
    print(*failures, sep="\n")
    named = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [(name, *how) for name, how in shipped().items() if named in name]
    with private_servers({"redis", *(store for _, _, store in chosen)}) as (folder, urls):
        for name, text in examples():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            if named in name:
                chosen.append((name, ["node" if name.endswith("mjs") else "/usr/bin/python3", f"{folder}/{name}"], "redis"))
        os.symlink(os.path.abspath(f"{CLIENTS}/node/node_modules"), f"{folder}/node_modules")

        def one(name, command, store):
            with open(os.path.join(folder, f"{name}.err"), "w+b") as errors:
                return judge(name, Trial(name, command, store, urls[store], errors), errors)

        with ThreadPoolExecutor(6) as pool:  # they mostly wait
            for trial in [pool.submit(one, *row) for row in chosen]:
                failures += trial.result()
    print(f"{len(chosen)} clients, {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
