"""Types at a real bash that has the completion, and reads the manual. Usage: shell_test.py LOCKBENCH"""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
PATIENCE = 60  # seconds, on a busy machine
PROMPT = "ready> "


class Bash:
    """An interactive bash on a terminal, in which `lockbench` is the program under test."""

    def __init__(self, folder):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {"PATH": f"{LOCKBENCH.parent}:{os.environ['PATH']}", "PS1": PROMPT, "TERM": "dumb",
                           "HOME": str(folder), "INPUTRC": "/dev/null", "LC_ALL": "C.UTF-8"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self.shown = ""
        self.wait_for(PROMPT)
        for line in ("bind 'set bell-style none'", f"source '{ROOT}/cli/completions/lockbench.bash'"):
            self.type(line + "\n")
            self.wait_for("\n" + PROMPT)

    def type(self, keys):
        self.shown = ""
        os.write(self.terminal, keys.encode())

    def wait_for(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.shown:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {text!r} in {self.shown!r}")
            self.shown += os.read(self.terminal, 4096).decode(errors="replace").replace("\r", "")

    def completed(self, typed, wanted):
        """Types it and a tab; then the line must be `wanted`, which is followed by a blank."""
        self.type(f"{typed}\t|")
        self.wait_for("|")
        line = self.shown.split("|")[0]
        self.type("\x15\n")  # forgets the line
        self.wait_for("\n" + PROMPT)
        if line != wanted:
            raise AssertionError(f"{typed!r} became {line!r}, not {wanted!r}")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Shell(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_bash_completes_commands_options_and_values(self):
        (self.folder / "results of monday.json").touch()
        bash = Bash(self.folder)
        self.addCleanup(bash.close)
        bash.completed("lockbench cap", "lockbench capacity ")
        bash.completed("lockbench run --acquire-t", "lockbench run --acquire-timeout ")
        bash.completed("lockbench run redis-que", "lockbench run redis-queue ")
        bash.completed("lockbench hazards late-", "lockbench hazards late-release ")
        bash.completed("lockbench run --format mark", "lockbench run --format markdown ")
        bash.completed("lockbench run --format=mark", "lockbench run --format=markdown ")
        bash.completed("lockbench run --load alone,dem", "lockbench run --load alone,demand ")
        bash.completed("lockbench show res", "lockbench show results\\ of\\ monday.json ")
        bash.completed("lockbench run --clients ", "lockbench run --clients ")

    def test_every_command_has_a_page_that_man_shows_without_a_warning(self):
        subprocess.run([LOCKBENCH, "manual", self.folder], check=True)
        pages = {page.name: page for page in self.folder.iterdir()}
        overview = subprocess.run([LOCKBENCH, "--help"], check=True, capture_output=True, text=True).stdout
        commands = re.findall(r"^  ([a-z-]+) ", overview, re.MULTILINE)
        self.assertIn("run", commands)
        self.assertEqual(sorted(pages), sorted(["lockbench.1"] + [f"lockbench-{name}.1" for name in commands]))
        for name, page in pages.items():
            shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=False,
                                   env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), name)
            self.assertIn("NAME\n", shown.stdout)
        # What roff would take for its own is shown as it was written.
        shown = subprocess.run(["man", "-l", pages["lockbench-hazards.1"]], capture_output=True, text=True, check=True,
                               env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100"}).stdout
        self.assertIn("lockbench hazards 'crash-*' --strategies redis-set-nx,redlock", shown)


if __name__ == "__main__":
    unittest.main()
