#!/usr/bin/python3
"""redis-py's Lock for asyncio (redis.asyncio.lock.Lock): all clients on one event loop. A cancelled request is a cancelled
task."""
import asyncio
import json
import sys
import time

import redis.asyncio
from redis.exceptions import LockError, ResponseError

ABOUT = {"name": "redis-py asyncio Lock", "version": redis.__version__, "store": "redis",
         "traits": {"expiry": "ttl", "fencing": False, "reentrant": False, "renews": False, "waiting": "poll"}}


class Client:
    def __init__(self, url):
        self.redis = redis.asyncio.Redis.from_url(url)
        self.locks = {}

    async def carry_out(self, do, request):
        key = request.get("key")
        if do == "close":
            return await self.redis.close()
        if do == "acquire":
            lock = self.locks.setdefault(key, self.redis.lock(key))
            lock.timeout, wait = request["ttl_ms"] / 1000, request["wait_ms"] / 1000
            return "acquired" if await lock.acquire(blocking=wait > 0, blocking_timeout=wait) else "taken"
        if do == "held":
            return {"held": key in self.locks and await self.locks[key].owned()}
        try:
            if do == "release":
                await self.locks.setdefault(key, self.redis.lock(key)).release()
                return "released"
            if do == "renew":
                await self.locks.setdefault(key, self.redis.lock(key)).extend(request["ttl_ms"] / 1000, replace_ttl=True)
                return "renewed"
        except LockError:  # also LockNotOwnedError
            return "not_held" if do == "release" else "lost"
        return "unsupported"


async def answer(request, hello, clients):
    try:
        what = {}
        if request["do"] == "work":
            time.sleep(request["ms"] / 1000)  # the event loop is busy for so long
        elif request["do"] != "echo":
            if request["client"] not in clients:
                clients[request["client"]] = Client(hello["stores"]["redis"])
            what = await clients[request["client"]].carry_out(request["do"], request)
    except (Exception, asyncio.CancelledError) as error:
        what = {"outcome": "failed", "definite": isinstance(error, ResponseError),
                "reason": f"{type(error).__name__}: {error}"[:300]}
    what = {"outcome": what} if isinstance(what, str) else what or {}
    print(json.dumps({"id": request["id"], **what}), flush=True)


async def main():
    lines, hello, clients, tasks = asyncio.StreamReader(), {}, {}, {}
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        request = json.loads(line)
        if request["do"] == "hello":
            hello.update(request)
            print(json.dumps({"id": request["id"], **ABOUT}), flush=True)
        elif request["do"] == "cancel":
            if request["of"] in tasks:
                tasks[request["of"]].cancel()
            print(json.dumps({"id": request["id"]}), flush=True)
        else:
            task = tasks[request["id"]] = asyncio.create_task(answer(request, hello, clients))
            task.add_done_callback(lambda _, number=request["id"]: tasks.pop(number))


asyncio.run(main())
