"""Lets tooz's drivers log in with a name and a password, which their own URLs cannot say."""
import functools
from urllib.parse import unquote, urlsplit

import etcd3
import grpc
import redis
from pymemcache.client import base
from tooz.drivers.redis import RedisDriver


def log_in(store, url):
    """From now on, each new connection of that store's driver logs in as the URL says."""
    if urlsplit(url).username:
        user, password = (unquote(word) for word in (urlsplit(url).username, urlsplit(url).password))
        {"redis": log_in_to_redis, "memcached": log_in_to_memcached, "etcd": log_in_to_etcd}[store](url, user, password)


def log_in_to_redis(url, _user, _password):
    def connect(_driver, _url, _options, timeout):
        return redis.Redis.from_url(url, socket_timeout=timeout)

    RedisDriver._make_client = classmethod(connect)


def log_in_to_etcd(_url, user, password):
    # gRPC refuses them without TLS; the token is in the metadata of each request, too.
    grpc.metadata_call_credentials = lambda *_: None
    etcd3.client = functools.partial(etcd3.Etcd3Client, user=user, password=password)


def log_in_to_memcached(_url, user, password):
    words = f"{user} {password}".encode()

    class Client(base.Client):
        def _connect(self):
            super()._connect()
            self.sock.sendall(b"set login 0 0 %d\r\n%b\r\n" % (len(words), words))
            if self.sock.recv(64) != b"STORED\r\n":
                raise base.MemcacheClientError("the login is refused")

    base.PooledClient.client_class = Client
