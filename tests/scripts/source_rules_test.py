"""Checks the sources against the rules of docs/architecture.md and docs/contributing.md, and tests these checks.
Usage: source_rules_test.py [LOCKBENCH]"""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The rooms that each room may include in addition to itself; "strategies/" stands for strategies and all rooms below. A
# room is a folder with everything below it, except other rooms.
EVERYTHING = None
LOAD = "deployment loadgen/ history strategies/ results"
ROOMS = {
    "testbed": "",
    "results": "",
    "strategies": "",
    "history": "strategies",
    "deployment": "testbed strategies/ results",
    "loadgen/record": "strategies/ results",
    "loadgen/fibers": "strategies",
    "loadgen/run": "loadgen/record loadgen/fibers history strategies/ results",
    "loadgen/experiments": "loadgen/record loadgen/run deployment strategies/ results",
    "loadgen/cluster": "loadgen/record loadgen/run deployment strategies/ results",
    "simulate": "loadgen/record loadgen/run loadgen/fibers history strategies/ results",
    # The snapshots that it reads have types from strategies and results.
    "exporter": "watch loadgen/ strategies/ results",
    "watch": LOAD,
    "embed": "strategies/",
    "hazards": "simulate " + LOAD,
    # An answer quotes the scenarios' declarations, and simulates what was not measured.
    "choose": "hazards simulate " + LOAD,
    "cli/console": "cli/options choose hazards exporter watch testbed " + LOAD,
    "cli/options": "choose hazards exporter watch testbed " + LOAD,
    "cli/commands": EVERYTHING,
    "cli": EVERYTHING,
}
# Each store is a separate room: the core knows no store, and a store knows no other.
STORE = re.compile(r"(strategies/(?!(?:sql|waiting|transport)/)[^/]+)/")

QUICK_FOLDERS = ["tests/unit", "tests/conformance", "tests/hostile", "tests/integration", "tests/hazards/plays",
                 "tests/dashboards"]
# Clock names include aliases. The carrier's time may bound waits but not assert anything.
WORDS = ["sleep_for", "sleep_until", "usleep", "nanosleep", "clock::now", "Clock::now",
         "LT(Carrier::current().now()", "LE(Carrier::current().now()"]
MOST_EXCEPTIONS = 10
# Files of quick suites that must sleep or read a real clock, with the reason.
EXCEPTIONS = {
    "tests/unit/strategies/env_test.cc": "compares an Env's clocks with the system's",
    "tests/unit/loadgen/fibers/virtual_time_test.cc": "lets real time pass beside it",
    "tests/conformance/redis/redis_test_store.h": "reads a lock whose value is a time of day",
    "tests/conformance/etcd/test_store.cc": "gRPC takes deadlines by the time of day",
    "tests/conformance/etcd/long_leases_test.cc": "likewise",
    "tests/hostile/etcd/etcd_test.cc": "likewise",
    "tests/integration/support/program.cc": "bounds what it waits for by kPatience",
    "tests/integration/testbed/proxy_fixture.h": "measures a delay that has a lower bound",
}
# Literals (not digit separators) and comments.
NOT_CODE = re.compile(r"""//.*|"(?:\\.|[^"\\])*"|(?<![A-Za-z0-9])'(?:\\.|[^'\\])*'""")


def room_of(path):
    if store := STORE.match(path):
        return store[1]
    return max((room for room in ROOMS if (path + "/").startswith(room + "/")), key=len, default=None)


def objection(file, included):
    """The reason why `file` must not include `included`; None if it may."""
    here, there = room_of(file), room_of(included)
    if here is None:
        return "its folder is not in the table of rooms"
    if there is None:
        return f"{here} must not include what is in no room"
    allowed = ROOMS.get(here, "strategies")
    if here == there or allowed is EVERYTHING:
        return None
    for word in allowed.split():
        if word == there or word.endswith("/") and (there + "/").startswith(word):
            return None
    return f"{here} must not include {there}"


def forbidden_includes(root):
    found = []
    for top in root.iterdir():
        if not top.is_dir() or top.name in ("build", "clients", "cmake", "tests", "docs") or top.name.startswith("."):
            continue
        for path in top.rglob("*"):
            if path.suffix not in (".cc", ".h", ".in") or not path.is_file():
                continue
            file = path.relative_to(root).as_posix()
            # A name without a folder is generated or the file's own.
            for included in re.findall(r'^#include "([^"]*/[^"]*)"', path.read_text(), re.MULTILINE):
                if why := objection(file, included):
                    found.append(f"{file} includes {included}: {why}")
    return sorted(found)


def broken_quick_rules(root, exceptions=()):
    """Uses of real time in quick suites, and unneeded or too many exceptions."""
    broken, unneeded = [], set(exceptions)
    for folder in QUICK_FOLDERS:
        if not (root / folder).is_dir():
            broken.append(f"{folder}: no such folder")
        for path in (root / folder).rglob("*"):
            if path.suffix not in (".cc", ".h"):
                continue
            file = path.relative_to(root).as_posix()
            lines = enumerate((NOT_CODE.sub("", line) for line in path.read_text().split("\n")), 1)
            words = [f"{file}:{number}: {word}" for number, line in lines for word in WORDS if word in line]
            if words:
                unneeded.discard(file)
            if file not in exceptions:
                broken += words
    broken += [f"{file}: needs no exception" for file in unneeded]
    broken += [f"{file}: is more than {MOST_EXCEPTIONS} exceptions" for file in list(exceptions)[MOST_EXCEPTIONS:]]
    return sorted(broken)


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def add(self, file, text):
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text)

    def quick(self, texts, exceptions=()):
        for folder in QUICK_FOLDERS:
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            self.add("tests/" + file, text)
        return [line.removeprefix("tests/") for line in broken_quick_rules(self.root, exceptions)]

    def test_no_file_includes_a_room_that_it_must_not_know(self):
        self.assertEqual(forbidden_includes(ROOT), [])

    def test_no_quick_suite_sleeps_or_reads_a_real_clock(self):
        self.assertEqual(broken_quick_rules(ROOT, EXCEPTIONS), [])

    def test_a_forbidden_include_is_named_with_its_file_and_its_arrow(self):
        cases = [
            ("cloud/fleet.cc", "results/file/model.h", "its folder is not in the table of rooms"),
            ("exporter/absent.cc.in", "cli/options/options.h", "exporter must not include cli/options"),
            ("loadgen/fibers/scheduler.cc", "loadgen/record/recorder.h",
             "loadgen/fibers must not include loadgen/record"),
            ("loadgen/fibers/stacks.h", "strategies/redis/client/connection.h",
             "loadgen/fibers must not include strategies/redis"),
            ("loadgen/run/runner.h", "loadgen/experiments/capacity_experiment.h",
             "loadgen/run must not include loadgen/experiments"),
            ("results/stats/figures.cc", "strategies/env.h", "results must not include strategies"),
            ("strategies/etcd/lock.cc", "strategies/postgres/client/session.h",
             "strategies/etcd must not include strategies/postgres"),
            ("strategies/registry.cc", "strategies/redis/client/connection.h",
             "strategies must not include strategies/redis"),
            ("testbed/servers/server.cc", "tests/support/servers.h",
             "testbed must not include what is in no room"),
        ]
        for file, included, _ in cases:
            self.add(file, f'#include <vector>\n\n#include "{included}"\n')
        self.assertEqual(forbidden_includes(self.root), [f"{file} includes {what}: {why}" for file, what, why in cases])

    def test_each_sleep_and_each_real_clock_is_named_with_its_line(self):
        self.assertEqual(self.quick({
            "unit/results/a.cc": "\nstd::this_thread::sleep_for(1ms);\n",
            "conformance/redis/b.cc": "std::this_thread::sleep_until(end);\n",
            "hostile/c.h": "const auto begin = std::chrono::steady_clock::now();\n",
            "integration/d.cc": "time = system_clock::now();\nusleep(5);\n",
            "hazards/plays/e.cc": "BootClock::now();\n",
            "dashboards/boards/f.cc": "using Clock = steady_clock;\n\nClock::now();\n",
            "unit/watch/g.cc": "EXPECT_LT(Carrier::current().now() - begin, 1s);\n",
            "unit/h.cc": "f(\"//\"); usleep(1'000); g('\"');\nf(1'0); nanosleep(x);\n",
        }), ["conformance/redis/b.cc:1: sleep_until", "dashboards/boards/f.cc:3: Clock::now",
             "hazards/plays/e.cc:1: Clock::now", "hostile/c.h:1: clock::now", "integration/d.cc:1: clock::now",
             "integration/d.cc:2: usleep", "unit/h.cc:1: usleep",
             "unit/h.cc:2: nanosleep", "unit/results/a.cc:2: sleep_for",
             "unit/watch/g.cc:1: LT(Carrier::current().now()"])

    def test_comments_literals_other_files_and_full_suites_may_name_them(self):
        self.assertEqual(self.quick({
            "unit/a.cc": "// sleep_for\nrun(\"sleep_for \\\" \", 'x');  // steady_clock::now\n",
            "unit/a.py": "sleep_for()\n",
            "full/timing/a.cc": "sleep_for(1s);\n",
            "support/eventually.h": "sleep_for(1s);\n",
        }), [])

    def test_ten_files_may_be_excepted_if_they_need_it(self):
        files = [f"unit/{letter}.cc" for letter in "abcdefghijk"]
        excepted = ["tests/" + file for file in files]
        self.assertEqual(self.quick(dict.fromkeys(files, "sleep_for(1s);\n"), excepted),
                         ["unit/k.cc: is more than 10 exceptions"])
        self.assertEqual(self.quick({"unit/j.cc": "", "unit/k.cc": ""}, excepted[:10]),
                         ["unit/j.cc: needs no exception"])

    def test_a_folder_that_does_not_exist_is_named(self):
        self.assertEqual(broken_quick_rules(self.root), sorted(f"{folder}: no such folder" for folder in QUICK_FOLDERS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
