#!/usr/bin/python3
"""PostgreSQL's advisory locks over psycopg 3. A client has a connection of its own, which is the lock's session."""
import psycopg
from psycopg.errors import LockNotAvailable, ProgrammingError, QueryCanceled

from adapter import serve


class Client:
    def __init__(self, hello):
        self.url = hello["stores"]["postgres"]
        self.connect()

    def connect(self):
        self.connection = psycopg.connect(self.url, autocommit=True)
        self.held_now = []  # a key as often as it was acquired

    def ask(self, text, *values):
        return self.connection.execute(text, values).fetchone()[0]

    def acquire(self, key, _ttl, wait):
        if self.connection.closed:  # and its locks are free
            self.connect()
        try:
            if wait:
                self.ask("SELECT set_config('lock_timeout', %s, false)", f"{max(1, round(1000 * wait))}ms")
                self.ask("SELECT pg_advisory_lock(hashtextextended(%s, 0))", key)
            elif not self.ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key):
                return "taken"
        except LockNotAvailable:
            return "taken"
        self.held_now.append(key)
        return "acquired"

    def cancel(self):
        self.connection.cancel()

    def release(self, key):
        if not self.ask("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key):
            return "not_held"
        if key in self.held_now:  # not after an acquisition without an answer
            self.held_now.remove(key)
        return "released"

    def held(self, key):
        return key in self.held_now and not self.connection.closed

    def close(self):
        self.connection.close()


ABOUT = {"name": "psycopg advisory lock", "version": psycopg.__version__, "store": "postgres",
         "traits": {"expiry": "connection", "fencing": False, "reentrant": True, "renews": False, "waiting": "queue"}}
serve(ABOUT, Client, definite=(ProgrammingError, QueryCanceled))
