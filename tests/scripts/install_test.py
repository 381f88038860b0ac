"""Installs the build into a folder, and uses what is there: the program, and the library by its example.
Usage: install_test.py LOCKBENCH"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve().parent
PATIENCE = 60  # seconds, on a busy machine
# Nobody's settings, and no package's name, decide what is found.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}

LOSS = """
#include <lockbench/lock.h>
#include <prometheus/registry.h>
#include <iostream>
int main(int, char** argv) {
  lockbench::embed::Locks locks({"redis-set-nx-lua", {argv[1]}}, std::make_shared<prometheus::Registry>());
  auto lock = locks.acquire("k");
  std::cout << "held: " << lock.valid() << std::endl;
  std::cin.get();
  std::cout << "renewed: " << lock.renew(lockbench::embed::Settings().ttl) << std::endl;
  std::cout << "valid: " << lock.valid() << std::endl;
  std::cout << "released: " << lock.release() << std::endl << lock.reason() << std::endl;
}
"""


def output_of(*command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **{"env": ENVIRONMENT, **settings})
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Redis:
    """A server that others may use."""

    def __init__(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
                                        cwd=folder, stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        # Private servers may run under another account.
        cls.folder.chmod(0o755)
        cls.prefix = cls.folder / "moved"
        output_of("cmake", "--install", BUILD, "--prefix", cls.folder / "installed")
        (cls.folder / "installed").rename(cls.prefix)

    def only(self, pattern):
        found = list(self.prefix.rglob(pattern))
        self.assertEqual(len(found), 1, pattern)
        return found[0]

    def test_the_program_finds_its_parts(self):
        run = output_of(self.prefix / "bin/lockbench", "run", "redis-set-nx-lua", "--duration", "500ms", "--hold", "0",
                        "--contended-grants", "1", "--out", "-", cwd=self.folder)
        self.assertEqual([one["strategy"] for one in json.loads(run)["runs"]], ["redis-set-nx-lua"])
        # The others are loaded into servers by some scenarios.
        for name in ("lockbench-clock-shim.so", "lockbench-hosts-shim.so", "lockbench-sync-shim.so"):
            self.assertEqual(self.only(name).parent, self.only("lockbench-supervisor").parent)

    def test_pages_and_data_are_there(self):
        for file in ("share/man/man1/lockbench-run.1", "share/bash-completion/completions/lockbench",
                     "share/lockbench/schema.json", "share/lockbench/dashboards/prometheus/alerts.yml",
                     "share/doc/lockbench/docs/cli.md", "share/doc/lockbench/examples/lockbench-probe.service"):
            self.assertTrue((self.prefix / file).is_file(), file)

    def test_the_example_is_built_with_cmake_and_counts_its_locks(self):
        output_of("cmake", "-G", "Ninja", "-S", self.only("orders.cc").parent, "-B", self.folder / "orders",
                  f"-DCMAKE_PREFIX_PATH={self.prefix}")
        output_of("cmake", "--build", self.folder / "orders")
        redis = Redis(self.folder)
        self.addCleanup(redis.stop)
        said = output_of(self.folder / "orders/orders", f"redis://127.0.0.1:{redis.port}")
        self.assertIn("\n200 orders written\n", said)
        for name, outcome in (("acquire", "acquired"), ("held", "released")):
            labels = f'outcome="{outcome}",strategy="redis-fenced"'
            self.assertIn(f"lockbench_lock_{name}_seconds_count{{{labels}}} 200\n", said)

    def test_a_program_built_with_pkg_config_learns_that_it_lost_its_lock(self):
        environment = ENVIRONMENT | {"PKG_CONFIG_PATH": str(self.only("lockbench.pc").parent)}
        flags = output_of("pkg-config", "--cflags", "--libs", "lockbench", env=environment).split()
        (self.folder / "loss.cc").write_text(LOSS)
        output_of("g++", "-std=c++20", self.folder / "loss.cc", "-o", self.folder / "loss", *flags)
        redis = Redis(self.folder)
        self.addCleanup(redis.stop)
        environment = ENVIRONMENT | {"LD_LIBRARY_PATH": str(self.only("liblockbench.so").parent)}
        with subprocess.Popen([self.folder / "loss", f"redis://127.0.0.1:{redis.port}"], env=environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            self.assertEqual(program.stdout.readline(), "held: 1\n")
            with socket.create_connection(("127.0.0.1", redis.port)) as rogue:
                rogue.sendall(b"DEL lockbench:embedded:{k}\r\n")
                self.assertEqual(rogue.recv(64), b":1\r\n")
            said, _ = program.communicate("go on\n", timeout=PATIENCE)
        self.assertEqual(said, "renewed: 0\nvalid: 0\nreleased: 0\nthe lock was lost before its release\n")


if __name__ == "__main__":
    unittest.main()
