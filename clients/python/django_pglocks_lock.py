#!/usr/bin/python3
"""django-pglocks' advisory_lock. Django gives each thread, and so each client, a connection of its own."""
import threading
from urllib.parse import unquote, urlsplit

import django_pglocks
from django.conf import settings
from django.db import connection
from django.db.utils import OperationalError, ProgrammingError

from adapter import serve

CONFIGURING = threading.Lock()


def configure(url):
    with CONFIGURING:
        if not settings.configured:
            settings.configure(DATABASES={"default": {
                "ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:], "HOST": url.hostname, "PORT": url.port,
                "USER": unquote(url.username or ""), "PASSWORD": unquote(url.password or ""), "CONN_MAX_AGE": None}})


class Client:
    def __init__(self, hello):
        configure(urlsplit(hello["stores"]["postgres"]))
        self.locks = {}

    def acquire(self, key, _ttl, wait):
        # As Django does before each request; a connection that works is kept.
        connection.close_if_unusable_or_obsolete()
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{max(1, round(1000 * wait))}ms"])
        lock = django_pglocks.advisory_lock(key, wait=wait > 0)
        try:
            got = lock.__enter__()
        except OperationalError as error:
            if getattr(error.__cause__, "pgcode", None) == "55P03":  # lock_not_available
                return "taken"
            raise
        if not got:
            lock.__exit__(None, None, None)
            return "taken"
        self.locks.setdefault(key, []).append(lock)
        return "acquired"

    def release(self, key):
        if not self.locks.get(key):
            return "not_held"
        self.locks[key].pop().__exit__(None, None, None)
        return "released"

    def held(self, key):
        return bool(self.locks.get(key))

    def close(self):
        self.locks.clear()
        connection.close()


ABOUT = {"name": "django-pglocks", "version": django_pglocks.__version__, "store": "postgres",
         "traits": {"expiry": "connection", "fencing": False, "reentrant": True, "renews": False, "waiting": "queue"}}
serve(ABOUT, Client, definite=(ProgrammingError,))
