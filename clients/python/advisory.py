#!/usr/bin/python3
"""PostgreSQL's advisory locks over psycopg 3. A client has a connection of its own, which is the lock's session."""
import psycopg
from psycopg.errors import LockNotAvailable, ProgrammingError, QueryCanceled

from adapter import serve


class Client:
    def __init__(self, hello):
        self.connection = psycopg.connect(hello["stores"]["postgres"], autocommit=True)

    def ask(self, text, *values):
        return self.connection.execute(text, values).fetchone()[0]

    def acquire(self, key, _ttl, wait):
        if not wait:
            return "acquired" if self.ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key) else "taken"
        try:
            self.ask("SELECT set_config('lock_timeout', %s, false)", f"{max(1, round(1000 * wait))}ms")
            self.ask("SELECT pg_advisory_lock(hashtextextended(%s, 0))", key)
        except LockNotAvailable:
            return "taken"
        return "acquired"

    def cancel(self):
        self.connection.cancel()

    def release(self, key):
        return "released" if self.ask("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key) else "not_held"

    def held(self, _key):
        return not self.connection.closed

    def close(self):
        self.connection.close()


ABOUT = {"name": "psycopg advisory lock", "version": psycopg.__version__, "store": "postgres",
         "traits": {"expiry": "connection", "fencing": False, "reentrant": True, "renews": False, "waiting": "queue"}}
serve(ABOUT, Client, definite=(ProgrammingError, QueryCanceled))
