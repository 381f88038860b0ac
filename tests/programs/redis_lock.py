"""A sound client program for Redis, with nothing but Python: SET NX PX, and scripts that check the token."""
import json, socket, sys, threading, time, uuid
from urllib.parse import unquote, urlsplit

IF_MINE = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call(%s)"
RELEASE, RENEW = IF_MINE % "'DEL', KEYS[1]", IF_MINE % "'PEXPIRE', KEYS[1], ARGV[2]"


class Redis:
    def __init__(self, url):
        to = urlsplit(url)
        self.socket = socket.create_connection((to.hostname, to.port or 6379), timeout=1.5)
        self.answers = self.socket.makefile("rb")
        if to.password:
            self.call("AUTH", *filter(None, [unquote(to.username or ""), unquote(to.password)]))

    def call(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        line = self.answers.readline()[:-2]
        if line[:1] in (b"-", b""):
            raise (RuntimeError if line else ConnectionError)(line.decode() or "the connection was closed")
        return line.decode() if line[:1] != b":" else int(line[1:])


class Client:
    def __init__(self, url):
        self.url, self.redis, self.locks = url, None, {}

    def call(self, *words):
        try:
            self.redis = self.redis or Redis(self.url)
            return self.redis.call(*words)
        except OSError:
            self.redis = None
            raise

    def acquire(self, key, ttl, wait, cancelled):
        token, end = uuid.uuid4().hex, time.monotonic() + wait
        asked = time.monotonic()
        try:
            while self.call("SET", key, token, "NX", "PX", round(1000 * ttl)) != "+OK":
                if cancelled() or time.monotonic() >= end:
                    return "taken"
                time.sleep(0.02)
                asked = time.monotonic()
        except OSError:  # it may have been granted
            self.call("EVAL", RELEASE, 1, key, token)
            raise
        self.locks[key] = token, asked + ttl
        return {"outcome": "acquired", "token": token, "valid_ms": max(0, 1000 * (asked + ttl - time.monotonic()))}

    def release(self, key, cancelled):
        done = key in self.locks and self.call("EVAL", RELEASE, 1, key, self.locks[key][0])
        self.locks.pop(key, None)
        return "released" if done else "not_held"

    def renew(self, key, ttl):
        asked = time.monotonic()
        if key not in self.locks or not self.call("EVAL", RENEW, 1, key, self.locks[key][0], round(1000 * ttl)):
            self.locks.pop(key, None)
            return "lost"
        self.locks[key] = self.locks[key][0], asked + ttl
        return "renewed"

    def held(self, key):
        return {"held": self.locks.get(key, ("", 0))[1] > time.monotonic()}

    def work(self, seconds):
        time.sleep(seconds)

    def close(self):
        self.redis = None


class Program:
    about = {"name": "plain Redis", "version": "1", "store": "redis", "traits": {
        "expiry": True, "fencing": False, "reentrant": False, "renews": False, "waiting": "poll"}}
    client = Client

    def __init__(self):
        self.clients, self.cancelled, self.writing = {}, set(), threading.Lock()

    def answer(self, request, what):
        what = what if isinstance(what, dict) else {"outcome": what} if what else {}
        with self.writing:
            print(json.dumps({"id": request["id"], **what}), flush=True)

    def carry_out(self, request):
        do, number = request["do"], request.get("client")
        if do == "hello":
            self.url = request["stores"]["redis"]
            return self.about
        if do == "cancel":
            self.cancelled.add(request["of"])
        if do in ("echo", "cancel"):
            return {}
        client = self.clients.setdefault(number, self.client(self.url))
        key, ttl = request.get("key"), request.get("ttl_ms", 0) / 1000
        cancelled = lambda: request["id"] in self.cancelled
        calls = {"acquire": lambda: client.acquire(key, ttl, request["wait_ms"] / 1000, cancelled),
                 "release": lambda: client.release(key, cancelled), "renew": lambda: client.renew(key, ttl),
                 "held": lambda: client.held(key), "work": lambda: client.work(request["ms"] / 1000),
                 "close": client.close}
        return calls[do]() if do in calls else "unsupported"

    def serve_one(self, request):
        try:
            what = self.carry_out(request)
        except (OSError, RuntimeError) as error:
            what = {"outcome": "failed", "definite": isinstance(error, RuntimeError), "reason": str(error)}
        self.answer(request, what)

    def serve(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request["do"] in ("hello", "echo", "cancel"):
                self.serve_one(request)
            else:
                threading.Thread(target=self.serve_one, args=(request,), daemon=True).start()


if __name__ == "__main__":
    Program().serve()
