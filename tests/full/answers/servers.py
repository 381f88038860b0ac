"""Private servers for tests of what other languages do, on free loopback ports, in a folder of their own."""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

PATIENCE = 60  # seconds


def free_ports(number):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def eventually(what, condition):
    """Waits until the condition holds; returns its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)  # between two looks
    raise TimeoutError(f"not within {PATIENCE} s: {what}")


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Servers:
    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, command, **options):
        log = open(os.path.join(self.folder, f"{name}.log"), "ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **options)
        log.close()
        self.running.append(process)
        return process

    def stop(self):
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def redis(self, *options):
        (port,) = free_ports(1)
        self.start("redis", ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1", *options])
        eventually("redis", lambda: listens(port))
        return f"redis://127.0.0.1:{port}"

    def memcached(self, *options):
        (port,) = free_ports(1)
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        self.start("memcached", ["memcached", "-l", "127.0.0.1", "-p", str(port), *user, *options])
        eventually("memcached", lambda: listens(port))
        return f"memcached://127.0.0.1:{port}"

    def etcd(self, members):
        """The URLs of the clients, and the processes."""
        ports = free_ports(2 * members)
        clients, peers = ports[:members], ports[members:]
        cluster = ",".join(f"m{i}=http://127.0.0.1:{peers[i]}" for i in range(members))
        processes = []
        for i in range(members):
            client, peer = (f"http://127.0.0.1:{port}" for port in (clients[i], peers[i]))
            # Other clusters run in the same folder.
            processes.append(self.start(f"etcd{clients[i]}", [
                "etcd", "--name", f"m{i}", "--data-dir", os.path.join(self.folder, f"etcd{clients[i]}"),
                "--listen-client-urls",
                client, "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls",
                peer, "--initial-cluster", cluster]))
        eventually("etcd", lambda: all(listens(port) for port in clients))
        return [f"http://127.0.0.1:{port}" for port in clients], processes

    @staticmethod
    def etcd_leader(urls):
        """The index of the member that leads."""
        def status(url):
            with urllib.request.urlopen(f"{url}/v3/maintenance/status", data=b"{}", timeout=PATIENCE) as answer:
                return json.load(answer)
        every = [status(url) for url in urls]
        return next(i for i, one in enumerate(every) if one["leader"] == one["header"]["member_id"])

    def zookeeper(self):
        (port,) = free_ports(1)
        data = os.path.join(self.folder, "zookeeper")
        os.mkdir(data)
        jars = "zookeeper zookeeper-jute slf4j-api slf4j-nop netty-all log4j-1.2 guava metrics-core snappy-java".split()
        path = ":".join(f"/usr/share/java/{jar}.jar" for jar in jars)
        config = os.path.join(self.folder, "zoo.cfg")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"tickTime=2000\ndataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
                       "admin.enableServer=false\nforceSync=no\n")
        self.start("zookeeper", ["java", "-cp", path, "org.apache.zookeeper.server.ZooKeeperServerMain", config])
        eventually("zookeeper", lambda: listens(port))
        return f"127.0.0.1:{port}"

    def postgres(self, settings):
        """A DSN. `settings`: of postgresql.conf, by name."""
        (port,) = free_ports(1)
        programs = max(glob.glob("/usr/lib/postgresql/*/bin"))
        data = os.path.join(self.folder, f"postgres{port}")
        os.mkdir(data)
        # PostgreSQL refuses to run as root.
        as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if as_user:
            shutil.chown(data, "postgres")
        subprocess.run([*as_user, f"{programs}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/")
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.start("postgres", [*as_user, f"{programs}/postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1",
                                "-k", "", "-c", "fsync=off", *options])
        eventually("postgres", lambda: subprocess.run(
            [f"{programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode == 0)
        return f"postgresql://postgres@127.0.0.1:{port}/postgres"
