"""Tests scripts/new_store.py on a copy of the files that it changes. Usage: new_store_test.py [LOCKBENCH]"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHANGED = ["strategies/CMakeLists.txt", "tests/CMakeLists.txt", "testbed/servers/kinds.h"]
del sys.argv[1:]


class NewStore(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for file in CHANGED:
            (self.tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.tree / file)

    def make(self, name):
        return subprocess.run([ROOT / "scripts/new_store.py", name, self.tree], capture_output=True, text=True)

    def files(self):
        return {str(path.relative_to(self.tree)): path.read_text() for path in self.tree.rglob("*") if path.is_file()}

    def test_makes_files_that_compile_and_say_what_is_missing(self):
        made = self.make("consul")
        self.assertEqual(made.returncode, 0, made.stderr)
        files = self.files()
        self.assertEqual(sorted(set(files) - set(CHANGED)), [
            "deployment/consul.cc", "strategies/consul/client/connection.cc", "strategies/consul/client/connection.h",
            "strategies/consul/client/store.cc", "strategies/consul/consul_lease.cc",
            "testbed/servers/consul_server.cc", "tests/conformance/consul/test_store.cc",
            "tests/unit/strategies/consul/connection_test.cc"])
        for file, text in files.items():
            self.assertNotRegex(text, "@[Ss]tore@|STORE\\.cc", file)
            if file not in CHANGED:
                self.assertIn(file, made.stdout)
        self.assertIn("lockbench_store(consul ALWAYS)\n", files["strategies/CMakeLists.txt"])
        self.assertIn("conformance consul", files["tests/CMakeLists.txt"])
        self.assertIn("unit/strategies/consul", files["tests/CMakeLists.txt"])
        self.assertIn("StartedServer start_consul(Testbed& testbed);", files["testbed/servers/kinds.h"])
        self.assertIn("To write", made.stdout)
        for file in files:
            # The others need headers of tests.
            if not file.endswith(".cc") or file.startswith("tests/"):
                continue
            checked = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                                      "-Wno-missing-field-initializers", f"-I{self.tree}", f"-I{ROOT}",
                                      self.tree / file], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, f"{file}: {checked.stderr}")

    def test_changes_nothing_if_the_store_is_there(self):
        self.assertEqual(self.make("consul").returncode, 0)
        before = self.files()
        again = self.make("consul")
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists", again.stderr)
        self.assertEqual(self.files(), before)

    def test_refuses_a_wrong_name(self):
        before = self.files()
        for name in ("Consul", "my-store", "../x", "", "9p"):
            refused = self.make(name)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("allowed: lower-case letters", refused.stderr)
        self.assertEqual(self.files(), before)

    def test_says_which_line_it_does_not_find(self):
        path = self.tree / CHANGED[0]
        path.write_text(path.read_text().replace("memcached", "memcache"))
        before = self.files()
        refused = self.make("consul")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(CHANGED[0], refused.stderr)
        self.assertEqual(self.files(), before)


unittest.main()
