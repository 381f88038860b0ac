"""Applications that take locks in a live store and keep a log of what happened, as the truth about a watch."""

import base64
import collections
import contextlib
import heapq
import http.client
import json
import random
import re
import socket
import threading
import time
import uuid

from stage import ROOT, words_of

RELEASE = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0"
RENEW = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0"
MOST_SECONDS_BETWEEN_TURNS = 0.01


def watcher(name, without=()):
    """ACL SETUSER of a user NAME with the rights that docs/watch.md names; `without`: rights that it lacks."""
    text = (ROOT / "docs/watch.md").read_text()
    rights = re.search(r"^ACL SETUSER watcher (.*)$", text, re.MULTILINE)[1].replace(">PASSWORD", ">hunter2").split()
    return ["ACL", "SETUSER", name, *(right for right in rights if right not in without)]


class Family:
    """What happened to the locks of a family."""

    def __init__(self):
        self.acquired = self.released = self.renewed = self.expired = self.taken_over = self.stolen = 0
        self.holds = []  # seconds


class Application:
    """Does things at given times, on one thread."""

    def __init__(self, rate, seed=7):
        self.rate, self.random = rate, random.Random(seed)
        self.due, self.number, self.begun = [], 0, None
        self.families = collections.defaultdict(Family)
        self.free = {}  # keys by family
        self.next_order = 0
        self.held = {}  # (family, token, since) by key
        self.disturbed = ""  # why the log may not be the truth

    def at(self, when, action, *arguments):
        self.number += 1
        heapq.heappush(self.due, (when, self.number, action, arguments))

    def order(self, when, family):
        """Most locks: taken at random times, held for 30 ms on average."""
        self.next_order += self.random.expovariate(self.rate)
        self.at(self.next_order, self.order, family)
        keys = self.free[family]
        if not keys:
            return
        place = self.random.randrange(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        key = keys.pop()
        self.grant(when, family, key)
        self.at(when + max(0.002, self.random.expovariate(1 / 0.03)), self.release, key)

    def grant(self, when, family, key):
        raise NotImplementedError

    def release(self, when, key):
        raise NotImplementedError

    def end_hold(self, when, key):
        family, token, since = self.held.pop(key)
        self.families[family].released += 1
        self.families[family].holds.append(when - since)
        if family in self.free:
            self.free[family].append(key)
        return token

    def flush(self):
        """Sends what is left to send."""

    def close(self):
        """Ends its connections."""

    def now(self):
        return time.monotonic() - self.begun

    def play(self, seconds):
        self.begun = time.monotonic()
        while (now := self.now()) < seconds:
            while self.due and self.due[0][0] <= now:
                _, _, action, arguments = heapq.heappop(self.due)
                action(now, *arguments)
            self.flush()
            next_at = min(self.due[0][0] if self.due else seconds, seconds)
            time.sleep(max(0.0002, min(next_at - self.now(), MOST_SECONDS_BETWEEN_TURNS)))
        for key in list(self.held):
            self.release(self.now(), key)
        self.flush()


class OnRedis(Application):
    """Sends all over one connection, so that the server keeps the order, without waiting for answers."""

    def __init__(self, port, rate, seed=7):
        super().__init__(rate, seed)
        self.free["order"] = [f"lock:order:{i}" for i in range(max(200, rate // 4))]
        self.batch, self.sent, self.answered, self.refused = [], 0, 0, 0
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        """Each answer is a line. All but OK and 1 say that a lock was not in the expected state."""
        with contextlib.suppress(OSError), self.socket.makefile("rb") as answers:
            for answer in answers:
                self.refused += answer not in (b"+OK\r\n", b":1\r\n")
                self.answered += 1

    def close(self):
        self.socket.close()

    def send(self, *words):
        self.batch.append(words)

    def flush(self):
        if self.batch:
            self.sent += len(self.batch)
            self.socket.sendall(b"".join(words_of(*words) for words in self.batch))
        self.batch = []

    def play(self, seconds):
        super().play(seconds)
        deadline = time.monotonic() + 10
        while self.answered < self.sent and time.monotonic() < deadline:
            time.sleep(0.01)
        missing = self.sent - self.answered + self.refused
        self.disturbed = f"the application itself was too slow for {missing} of its locks" if missing else ""

    def grant(self, when, family, key, ttl=30000):
        token = str(uuid.UUID(int=self.random.getrandbits(128)))
        self.send("SET", key, token, "NX", "PX", ttl)
        self.families[family].acquired += 1
        self.held[key] = family, token, when
        return token

    def release(self, when, key):
        self.send("EVAL", RELEASE, 1, key, self.end_hold(when, key))

    def job(self, when, key, beat):
        """A lock that is renewed all the time: held for seven beats, with a time to live of five."""
        token = self.grant(when, "job", key, round(5000 * beat))
        for turn in range(1, 7):
            self.at(when + beat * turn, self.renew, "job", key, token, round(5000 * beat))
        self.at(when + 6.7 * beat, self.release, key)
        self.at(when + 7.3 * beat, self.job, key, beat)

    def renew(self, _when, family, key, token, ttl):
        self.send("EVAL", RENEW, 1, key, token, ttl)
        self.families[family].renewed += 1

    def hot(self, when):
        """One lock that always has a next client: it is granted 1 ms after its release."""
        self.grant(when, "hot", "lock:hot:1")
        self.at(when + 0.2, self.release, "lock:hot:1")
        self.at(when + 0.201, self.hot)

    def be_healthy(self, beat):
        """Locks of all these kinds, none of which is in trouble."""
        self.at(0, self.order, "order")
        self.at(0, self.hot)
        self.at(0, self.leader)
        self.at(0, self.shed)
        self.at(0, self.schedule)
        for i in range(5):
            self.at(0.1 * i, self.job, f"lock:job:{i}", beat)
        self.send("SET", "lock:config", '{"a":1}')

    def leader(self, when, token=None):
        """Renewed for ever."""
        if token:
            self.renew(when, "leader", "lock:leader:1", token, 15000)
        token = token or self.grant(when, "leader", "lock:leader:1", 15000)
        self.at(when + 3, self.leader, token)

    def shed(self, when, number=0):
        """ShedLock with lockAtLeastFor: at the end of the job, the end of its lock is moved to an earlier time."""
        key = f"lock:shed:{number % 2}"
        token = self.grant(when, "shed", key, 30000)
        del self.held[key]
        self.at(when + 0.5, lambda at: self.send("EVAL", RENEW, 1, key, token, 2000))
        self.at(when + 4, self.shed, number + 1)

    def schedule(self, when):
        """SET NX EX and nothing else, so that a job runs once in 3 s; declared with --never-released."""
        self.grant(when, "schedule", "lock:schedule:1", 2500)
        del self.held["lock:schedule:1"]
        self.at(when + 3, self.schedule)

    def dead(self, when, number=0):
        """A client that dies: its lock ends by expiry after 400 ms."""
        self.grant(when, "dead", f"lock:dead:{number}", 400)
        del self.held[f"lock:dead:{number}"]
        self.families["dead"].expired += 1
        self.at(when + 1, self.dead, number + 1)

    def lost(self, when):
        """An overwritten lock, and one that expires under its holder and is taken by another client."""
        self.send("SET", "lock:stolen:1", "first", "NX", "PX", 30000)
        self.send("SET", "lock:over:1", "first", "NX", "PX", 700)
        stolen, over = self.families["stolen"], self.families["over"]
        stolen.acquired, stolen.stolen, stolen.released = 2, 1, 1
        over.acquired, over.expired, over.taken_over, over.released = 2, 1, 1, 1
        self.at(when + 0.9, lambda _: self.send("SET", "lock:over:1", "second", "NX", "PX", 30000))
        self.at(when + 1, lambda _: self.send("SET", "lock:stolen:1", "thief", "PX", 30000))
        self.at(when + 2, lambda _: (self.send("DEL", "lock:stolen:1"), self.send("DEL", "lock:over:1")))


class Asking(Application):
    """Waits for each answer, and counts what it says. `dead_every`: seconds between clients that die."""

    dead_every = None

    def __init__(self, rate, family="order", locks=50):
        super().__init__(rate)
        self.family = family
        self.free[family] = [self.name_of(i) for i in range(locks)]
        self.at(0, self.order, family)
        if self.dead_every:
            self.at(1, self.dead)

    def name_of(self, number):
        raise NotImplementedError

    def take(self, key):
        """Returns what give() needs."""
        raise NotImplementedError

    def give(self, key, token):
        raise NotImplementedError

    def dead(self, when):
        raise NotImplementedError

    def grant(self, _when, family, key):
        token = self.take(key)
        self.families[family].acquired += 1
        self.held[key] = family, token, self.now()

    def release(self, _when, key):
        self.give(key, self.held[key][1])
        self.end_hold(self.now(), key)


class OnEtcd(Asking):
    """As etcd's own package `concurrency`: LOCK/LEASE, attached to a session's lease."""

    dead_every = 6

    def __init__(self, url, rate):
        super().__init__(rate)
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
        self.lease = self.new_lease(3600)

    def close(self):
        self.connection.close()

    def call(self, path, **body):
        self.connection.request("POST", f"/v3/{path}", json.dumps(body))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"etcd: {path}: {text.decode(errors='replace')}")
        return json.loads(text)

    def new_lease(self, seconds):
        return int(self.call("lease/grant", TTL=seconds)["ID"])

    @staticmethod
    def encoded(key, lease):
        return base64.b64encode(f"{key}/{lease:x}".encode()).decode()

    def name_of(self, number):
        return f"locks/order/{number}"

    def put(self, key, lease):
        self.call("kv/put", key=self.encoded(key, lease), value="", lease=str(lease))

    def take(self, key):
        self.put(key, self.lease)

    def give(self, key, _token):
        self.call("kv/deleterange", key=self.encoded(key, self.lease))

    def dead(self, when):
        """A client whose lease is no longer kept alive."""
        self.put(f"locks/dead/{self.families['dead'].acquired}", self.new_lease(2))
        self.families["dead"].acquired += 1
        self.families["dead"].expired += 1
        self.at(when + self.dead_every, self.dead)


class OnZookeeper(Asking):
    """As kazoo's and Curator's locks: ephemeral sequence nodes below the lock's node."""

    def __init__(self, url, rate):
        from kazoo.client import KazooClient  # Debian's python has it

        self.client = KazooClient(hosts=url, timeout=10)
        self.client.start(timeout=30)
        super().__init__(rate)
        for key in self.free[self.family]:
            self.client.ensure_path(key)

    def close(self):
        self.client.stop()
        self.client.close()

    def name_of(self, number):
        return f"/locks/order/{number}"

    def take(self, key):
        return self.client.create(f"{key}/lock-", b"", ephemeral=True, sequence=True)

    def give(self, _key, token):
        self.client.delete(token)


class OnPostgres(Asking):
    """Advisory locks of eight sessions."""

    def __init__(self, url, rate):
        import psycopg2

        self.sessions = [psycopg2.connect(url) for _ in range(8)]
        for session in self.sessions:
            session.autocommit = True
        super().__init__(rate, family="advisory")

    def close(self):
        for session in self.sessions:
            session.close()

    def name_of(self, number):
        return f"advisory:{number}"

    @staticmethod
    def ask(session, function, key):
        with session.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [int(key.split(":")[1])])
            if not cursor.fetchone()[0]:
                raise RuntimeError(f"{function} of {key} was refused")

    def take(self, key):
        session = self.random.choice(self.sessions)
        self.ask(session, "pg_try_advisory_lock", key)
        return session

    def give(self, key, token):
        self.ask(token, "pg_advisory_unlock", key)
