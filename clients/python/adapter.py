"""What the Python adapters share: reads requests, carries each client on a thread of its own, and writes the answers."""
import json
import os
import queue
import sys
import threading


class Lane:
    """The thread of a client. An echo has no client, but takes the same way."""
    def __init__(self, connect, definite, answer):
        self.connect, self.definite, self.answer = connect, definite, answer
        self.client, self.requests, self.unanswered = None, queue.SimpleQueue(), set()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            request = self.requests.get()
            try:
                what = self.carry_out(request["do"], request)
            except Exception as error:  # whatever a library throws
                definite = self.client is None or isinstance(error, self.definite)
                what = {"outcome": "failed", "definite": definite, "reason": f"{type(error).__name__}: {error}"[:300]}
            self.unanswered.discard(request["id"])
            self.answer(request, what)

    def carry_out(self, do, request):
        if do == "echo" or (do == "close" and self.client is None):
            return {}
        self.client = self.client or self.connect()
        times = [request[time] / 1000 for time in ("ttl_ms", "wait_ms") if time in request]
        what = getattr(self.client, do, lambda *_: "unsupported")(*([] if do == "close" else [request["key"], *times]))
        self.client = None if do == "close" else self.client
        return {"held": what} if isinstance(what, bool) else what


def serve(about, connect, definite=()):
    """`about`: the answer to hello. `connect(hello)` makes a client; its methods take a key and times in seconds, and return
    an outcome or a whole answer. `definite`: the exceptions after which the store has done nothing."""
    answers, writes, hello, lanes = os.fdopen(os.dup(1), "wb"), threading.Lock(), {}, {}
    os.dup2(2, 1)  # what a library prints must not stand among the answers
    def answer(request, what):
        what = {"outcome": what} if isinstance(what, str) else what or {}
        with writes:
            answers.write(json.dumps({"id": request["id"], **what}).encode() + b"\n")
            answers.flush()

    for request in map(json.loads, sys.stdin.buffer):
        if request["do"] == "hello":
            hello.update(request)
            answer(request, about)
        elif request["do"] == "cancel":
            lane = next((lane for lane in lanes.values() if request["of"] in lane.unanswered), None)
            answer(request, getattr(lane and lane.client, "cancel", lambda: "unsupported" if lane else None)())
        else:
            name = request.get("client")
            lanes[name] = lanes.get(name) or Lane(lambda: connect(hello), definite, answer)
            lanes[name].unanswered.add(request["id"])
            lanes[name].requests.put(request)
    os._exit(0)  # threads may wait in the library
