#!/usr/bin/python3
"""Are the statements of docs/libraries.md true? Each is shown with the library's adapter on a private server. One that is
no longer true fails, so that the page is corrected. Usage: facts.py [NAME]: only those whose name contains NAME."""
import hashlib
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from adapters import Broken, Trial, private_servers, shipped


class Fact(Trial):
    """Its processes carry the same adapter."""

    def ask(self, process, client, do, key=None, **fields):
        return process.ask(do, client=client, key=key or self.key, **fields)

    def expect_answer(self, holds, what):
        if not holds:
            raise Broken(what)

    def stop_beyond_ttl(self, process):
        """Like a pause of a virtual machine: the store ends its session meanwhile."""
        process.process.send_signal(signal.SIGSTOP)
        time.sleep(2.5 * self.ttl / 1000)  # the servers' clocks decide
        process.process.send_signal(signal.SIGCONT)


def redis_py_extend_below_a_millisecond_deletes_the_lock(fact, one, other):
    fact.expect(fact.acquire(one, 0), "acquired")
    fact.expect(fact.ask(one, 0, "renew", ttl_ms=0.4), "renewed")
    fact.expect(fact.acquire(other, 0), "acquired")


def tooz_postgres_names_share_a_lock(fact, one, other):
    seen = {}
    for number in range(100_000):
        name = f"job {number}"
        digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()[:2]
        if digest in seen:
            break
        seen[digest] = name
    fact.key = seen[digest]
    fact.expect(fact.acquire(one, 0), "acquired")
    fact.key = name
    fact.expect(fact.acquire(other, 0), "taken")


def granted_after_a_wait_of_a_ttl(fact, one, other):
    """The validity that the waiter is told."""
    fact.expect(fact.acquire(one, 0), "acquired")
    waiter = fact.ask(other, 0, "acquire", ttl_ms=500, wait_ms=30000)
    time.sleep(1)  # twice the waiter's TTL
    fact.expect(fact.release(one, 0), "released")
    return fact.expect(waiter, "acquired")["valid_ms"]


def redlock_counts_the_validity_from_the_first_try(fact, one, other):
    fact.expect_answer(granted_after_a_wait_of_a_ttl(fact, one, other) == 0, "it is valid")


def redlock_fork_counts_it_from_the_last_try(fact, one, other):
    fact.expect_answer(granted_after_a_wait_of_a_ttl(fact, one, other) > 0, "it is not valid")


def redlock_releases_a_lost_lock_for_two_seconds(fact, one, _):
    fact.expect(fact.ask(one, 0, "acquire", ttl_ms=100, wait_ms=0), "acquired")
    time.sleep(0.2)  # beyond its TTL
    begin = time.monotonic()
    fact.expect(fact.release(one, 0), "not_held")
    fact.expect_answer(time.monotonic() - begin > 1, "it gave up at once")


def etcd_mutex_is_reentrant_without_a_count(fact, one, other):
    for _ in range(2):
        fact.expect(fact.acquire(one, 0), "acquired")
    fact.expect(fact.release(one, 0), "released")
    fact.expect(fact.acquire(other, 0), "acquired")


def etcd_mutex_grants_to_a_waiter_without_a_session(fact, one, other):
    warm = fact.ask(other, 0, "acquire", key=fact.key + ":warm", ttl_ms=fact.ttl, wait_ms=0)
    fact.expect(warm, "acquired")  # it is logged in, and has its session
    fact.expect(fact.acquire(one, 0), "acquired")
    waiter = fact.acquire(other, 0, wait=60000)
    fact.expect(fact.acquire(other, 1), "taken")  # the waiter is in the queue
    fact.stop_beyond_ttl(other)
    fact.expect(fact.release(one, 0), "released")
    fact.expect(waiter, "acquired")
    fact.expect(fact.acquire(one, 1), "acquired")


def believes_after_its_session_has_ended(fact, one, other):
    fact.expect(fact.acquire(other, 0), "acquired")
    with ThreadPoolExecutor() as pool:
        pause = pool.submit(fact.stop_beyond_ttl, other)
        fact.acquired_soon(one, 0)
        pause.result()
    for _ in range(5):
        fact.expect_answer(fact.ask(other, 0, "held").answer().get("held") is True, "it knows of the loss")
        time.sleep(0.3)  # for news of its session
    fact.expect(fact.release(other, 0), "released")
    fact.expect(fact.acquire(other, 1), "taken")


FACTS = [
    ("redis-py", redis_py_extend_below_a_millisecond_deletes_the_lock),
    ("tooz-postgres", tooz_postgres_names_share_a_lock),
    ("node-redlock", redlock_counts_the_validity_from_the_first_try),
    ("sesamecare-redlock", redlock_fork_counts_it_from_the_last_try),
    ("node-redlock", redlock_releases_a_lost_lock_for_two_seconds),
    ("etcd-go", etcd_mutex_is_reentrant_without_a_count),
    ("etcd-go", etcd_mutex_grants_to_a_waiter_without_a_session),
    ("kazoo", believes_after_its_session_has_ended),
    ("curator", believes_after_its_session_has_ended),
]


def show(fact, statement):
    try:
        statement(fact, fact.start(), fact.start())
    except Exception as problem:  # also no answer in time
        return f"{type(problem).__name__}: {problem}"
    finally:
        fact.stop()
    return ""


def main():
    chosen = [row for row in FACTS if len(sys.argv) < 2 or sys.argv[1] in f"{row[0]} {row[1].__name__}"]
    clients = shipped()
    with private_servers({clients[name][1] for name, _ in chosen}) as (folder, urls):
        facts = []
        for number, (name, statement) in enumerate(chosen):
            command, store = clients[name]
            facts.append(Fact(name, command, store, urls[store], open(f"{folder}/{number}.err", "wb")))
            facts[-1].key = f"lockbench:20261129T000000Z-c0ffee:{number}"
        with ThreadPoolExecutor(6) as pool:  # they mostly wait
            problems = list(pool.map(show, facts, [statement for _, statement in chosen]))
    for (name, statement), problem in zip(chosen, problems):
        print(f"{'FAILED' if problem else 'ok'} {name} {statement.__name__}", problem)
    print(f"{len(chosen)} statements, {sum(map(bool, problems))} wrong")
    sys.exit(any(problems))


if __name__ == "__main__":
    main()
