"""Tests scripts/install_packages.sh with a fake package manager. Usage: install_packages_test.py
[LOCKBENCH]"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
del sys.argv[1:]


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        self.policy = self.folder / "policy-rc.d"
        self.play("dpkg-query", "exit 1")  # nothing is installed
        self.play("sudo", 'exec "$@"')
        self.play("useradd", f'echo "$@" >> {self.folder}/useradd')
        self.play("id", '[ "$*" = -u ] && echo 0')  # root, without the account

    def play(self, program, script):
        path = self.folder / "bin" / program
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def start(self, group):
        environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "LOCKBENCH_POLICY": self.policy,
                                    "TMPDIR": str(self.folder)}
        return subprocess.Popen([ROOT / "scripts/install_packages.sh", group], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def install(self, group="run"):
        program = self.start(group)
        _, said = program.communicate()
        self.assertEqual(program.returncode, 0, said)

    def ask_policy(self):
        """The query of a package before it starts its service; 101 forbids that."""
        return subprocess.run([self.policy], check=False).returncode

    def test_starts_no_service_and_leaves_nothing_behind(self):
        self.play("apt-get", f'[ "$1" = update ] || {self.policy}; echo $? > {self.folder}/answer')
        self.install()
        self.assertEqual((self.folder / "answer").read_text(), "101\n")
        self.assertFalse(self.policy.exists())

    def test_that_is_killed_forbids_nothing_afterwards(self):
        installing = self.folder / "installing"
        self.play("apt-get", f"echo $$ > {installing}.new; mv {installing}.new {installing}; exec sleep 60")
        program = self.start("run")
        for _ in range(6000):
            if installing.exists():
                break
            time.sleep(0.02)
        self.assertEqual(self.ask_policy(), 101)
        program.kill()
        os.kill(int(installing.read_text()), signal.SIGKILL)
        program.communicate()
        self.assertEqual(program.returncode, -signal.SIGKILL)
        self.assertTrue(self.policy.exists())
        self.assertEqual(self.ask_policy(), 0)
        self.assertFalse(self.policy.exists())

    def test_leaves_the_policy_of_the_host_alone(self):
        self.play("apt-get", "exit 0")
        self.policy.write_text("#!/bin/sh\nexit 104\n")
        self.install()
        self.assertEqual(self.policy.read_text(), "#!/bin/sh\nexit 104\n")

    def test_takes_the_node_and_the_npm_that_are_there(self):
        asked = self.folder / "asked"
        self.play("apt-get", f'echo " $* " > {asked}')
        self.play("node", "exit 0")
        self.play("npm", "exit 0")
        self.install("full")
        self.assertIn(" chromium ", asked.read_text())
        self.assertNotIn(" npm ", asked.read_text())
        self.assertNotIn(" nodejs ", asked.read_text())

    def test_a_group_stands_for_its_parts_which_can_be_chosen(self):
        asked = self.folder / "asked"
        self.play("apt-get", f'echo " $* " > {asked}')
        self.install("build")
        for package in ("g++", "libpq-dev", "libgrpc++-dev"):
            self.assertIn(f" {package} ", asked.read_text())
        self.install("build-common")
        self.assertIn(" g++ ", asked.read_text())
        self.assertNotIn(" libpq-dev ", asked.read_text())

    def test_an_unknown_store_is_refused_with_those_that_there_are(self):
        for stores in ("oracle", "redis,oracle", ""):
            run = subprocess.run([ROOT / "run.sh", "--stores", stores, "list"], capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stdout), (1, ""))
            self.assertIn("allowed: etcd, memcached, mysql, nats, postgres, redis, zookeeper", run.stderr)

    def test_makes_the_account_of_private_servers(self):
        self.play("apt-get", "exit 0")
        self.install()
        made = (self.folder / "useradd").read_text()
        self.assertIn("--system", made)
        self.assertIn("nologin", made)
        self.assertTrue(made.endswith(" lockbench\n"), made)


unittest.main()
