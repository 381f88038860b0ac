"""Client programs that differ from redis_lock.py: variants.py KIND. All but `renews` are broken, each in one way."""
import json, os, select, sys, threading, time

sys.dont_write_bytecode = True  # nothing stays beside the sources
from redis_lock import Client, Program, RELEASE

KIND = sys.argv[1]


class Renewing(Client):
    """Renews each lock every third of its TTL, on a thread of its own."""
    def acquire(self, key, ttl, wait, cancelled):
        what = super().acquire(key, ttl, wait, cancelled)
        if isinstance(what, dict):
            threading.Thread(target=self.keep, args=(key, ttl, self.locks[key][0]), daemon=True).start()
        return what

    def keep(self, key, ttl, token):
        other = Client(self.url)
        while time.sleep(ttl / 3) or self.locks.get(key, ("",))[0] == token:
            other.locks[key] = token, 0
            if self.prolong(other, key, ttl) == "renewed":
                self.locks[key] = token, time.monotonic() + ttl

    def prolong(self, other, key, ttl):
        return other.renew(key, ttl)


class RenewsWithTtl0(Renewing):
    def prolong(self, other, key, ttl):
        other.call("PEXPIRE", key, 0)
        return "renewed"


class Unchecked(Client):
    def release(self, key, cancelled):
        return "released" if self.call("DEL", key) else "not_held"


class Forgets(Client):
    """Forgets its token before the answer to a release."""
    def release(self, key, cancelled):
        token, _ = self.locks.pop(key, ("", 0))
        return "released" if token and self.call("EVAL", RELEASE, 1, key, token) else "not_held"


class Forever(Client):
    """Says that its locks end with a session, and gives them an hour."""
    def acquire(self, key, ttl, wait, cancelled):
        what = super().acquire(key, 3600, wait, cancelled)
        return "acquired" if isinstance(what, dict) else what


class Proceeds(Client):
    def acquire(self, key, ttl, wait, cancelled):
        try:
            return super().acquire(key, ttl, wait, cancelled)
        except OSError:
            return "acquired"


class OneThread(Program):
    """Everything on one thread: the requests, the renewals, and the application's work."""
    class Lazy(Renewing):
        def keep(self, key, ttl, token):
            pass

    client = Lazy

    def serve(self):
        renewed, text = time.monotonic(), b""
        while True:
            if select.select([0], [], [], 0.05)[0]:
                more = os.read(0, 65536)
                if not more:
                    return
                *lines, text = (text + more).split(b"\n")
                for line in lines:
                    self.serve_one(json.loads(line))
            if time.monotonic() - renewed > 0.3:
                renewed = time.monotonic()
                for client in self.clients.values():
                    for key in list(client.locks):
                        client.renew(key, 1.5)


class Troubled(Program):
    """Stops keeping the protocol with its third lock."""
    asked = 0

    def carry_out(self, request):
        if request["do"] == "acquire":
            self.asked += 1
        if self.asked < 3:
            return super().carry_out(request)
        if KIND == "dies":
            print("Traceback: out of luck, with", self.url, file=sys.stderr, flush=True)
            os._exit(7)
        while KIND == "stalls":
            time.sleep(1)
        while KIND == "floods":
            os.write(2, b"flood\n" * 10000)
            self.answer(request, "taken")
        with self.writing:
            print("Connecting ...", flush=True)
        return super().carry_out(request)


CLIENTS = {"renews": Renewing, "ttl0": RenewsWithTtl0, "unchecked": Unchecked, "forgets": Forgets,
           "forever": Forever, "proceeds": Proceeds}
PROGRAMS = {"one-thread": OneThread, "dies": Troubled, "stalls": Troubled, "floods": Troubled, "rubbish": Troubled}

program = PROGRAMS.get(KIND, Program)()
program.client = CLIENTS.get(KIND, program.client)
program.about = {**program.about, "name": KIND}
program.about["traits"] = {**program.about["traits"], "renews": KIND in ("renews", "ttl0", "one-thread")}
if KIND == "forever":
    program.about["traits"]["expiry"] = "session"
program.serve()
