#!/usr/bin/env python3
"""Bytes of one notification in a Redis Cluster: PUBLISH against SPUBLISH (redisson 3349).

usage: sharded_pubsub.py [SERVERS ...]     clusters of so many primaries; default: 3 6 12

Starts each cluster on free ports of loopback, publishes 2000 messages each way to one subscriber, and prints the messages
on the cluster's bus, by CLUSTER INFO, and the bytes on loopback, by /proc/net/dev, of one notification. Needs redis-server
7.0 and a machine on which nothing else uses loopback. What is seen: PUBLISH goes to every server, in a message of about
2 KiB whose head shows all slots; SPUBLISH goes to the replicas of its shard alone, and here there are none.
"""
import re
import socket
import subprocess
import sys
import tempfile
import time

MESSAGES = 2000
CHANNEL = "lockbench:{1}:released"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, folder):
        self.port, self.bus = free_port(), free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             "--cluster-enabled", "yes", "--cluster-port", str(self.bus), "--dir", folder,
             "--cluster-config-file", f"nodes-{self.port}.conf"], stdout=subprocess.DEVNULL)
        self.link = None
        until(lambda: self.connects(), "a server does not start")

    def connects(self):
        try:
            self.link = socket.create_connection(("127.0.0.1", self.port), 10)
        except OSError:
            return False
        self.answers = self.link.makefile("rb")
        return True

    def ask(self, line):
        """The answer's first line, or its text."""
        self.link.sendall(line.encode() + b"\r\n")
        head = self.answers.readline().decode().rstrip()
        if not head.startswith("$"):
            return head
        return self.answers.read(int(head[1:]) + 2).decode()

    def bus_messages(self):
        info = self.ask("CLUSTER INFO")
        return sum(int(n) for n in re.findall(r"cluster_stats_messages_publish\S*_sent:(\d+)", info))


def until(condition, failure):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(failure)
        time.sleep(0.05)


def loopback_bytes():
    with open("/proc/net/dev", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))


def form(servers):
    for i, server in enumerate(servers):
        first, last = (16384 * n // len(servers) for n in (i, i + 1))
        server.ask(f"CLUSTER SET-CONFIG-EPOCH {i + 1}")
        server.ask(f"CLUSTER ADDSLOTSRANGE {first} {last - 1}")
        if i > 0:
            servers[0].ask(f"CLUSTER MEET 127.0.0.1 {server.port} {server.bus}")
    known = f"cluster_known_nodes:{len(servers)}\r"
    until(lambda: all(known in info and "cluster_state:ok" in info
                      for info in (server.ask("CLUSTER INFO") for server in servers)), "the cluster does not form")


def measure(servers, owner, command):
    with socket.create_connection(("127.0.0.1", owner.port), 10) as listener:
        listener.sendall(f"{'S' if command == 'SPUBLISH' else ''}SUBSCRIBE {CHANNEL}\r\n".encode())
        listener.recv(4096)
        before = sum(server.bus_messages() for server in servers), loopback_bytes()
        for _ in range(MESSAGES):
            owner.ask(f"{command} {CHANNEL} released")
        time.sleep(0.2)  # until the last has arrived everywhere
        after = loopback_bytes(), sum(server.bus_messages() for server in servers)
    return (after[1] - before[0]) / MESSAGES, (after[0] - before[1]) / MESSAGES


def main():
    print(f"{'servers':>8} {'command':>9} {'bus messages':>13} {'bytes':>8}   of one notification")
    for count in [int(word) for word in sys.argv[1:]] or [3, 6, 12]:
        with tempfile.TemporaryDirectory() as folder:
            servers = []
            try:
                for _ in range(count):
                    servers.append(Server(folder))
                form(servers)
                slot = int(servers[0].ask(f"CLUSTER KEYSLOT {CHANNEL}").lstrip(":"))
                owner = next(server for i, server in enumerate(servers) if slot < 16384 * (i + 1) // count)
                for command in ("PUBLISH", "SPUBLISH"):
                    messages, size = measure(servers, owner, command)
                    print(f"{count:>8} {command:>9} {messages:>13.1f} {size:>8.0f}", flush=True)
            finally:
                for server in servers:
                    server.process.kill()
                    server.process.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1 and not all(word.isdigit() and int(word) >= 3 for word in sys.argv[1:]):
        sys.exit(__doc__)
    main()
