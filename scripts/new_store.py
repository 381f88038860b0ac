#!/usr/bin/env python3
"""Makes the files of a further store whose locks are leases by compare and set: stubs that compile and refuse with
"not written yet", and lists what to write. Usage: ./dev new-store NAME [ROOT]
  NAME  of the store: lower-case letters and digits, such as consul
  ROOT  the source tree to change, by default this one"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATES = HERE / "new_store"

# Lines that go behind a line of a file: (file, that line, the new lines).
LINES = [
    ("strategies/CMakeLists.txt", "lockbench_store(memcached ALWAYS)", ["lockbench_store(@store@ ALWAYS)"]),
    ("tests/CMakeLists.txt", "  LIBRARIES lockbench_memcached lockbench_test_strategies)",
     ["lockbench_add_suite(${program} unit/strategies/@store@ LABELS quick asan",
      "  LIBRARIES lockbench_@store@ lockbench_test_strategies)"]),
    ("tests/CMakeLists.txt",
     "lockbench_add_store_suite(conformance memcached THREADS memcached_add_cas LABELS asan LIBRARIES "
     "lockbench_conformance)",
     ["lockbench_add_store_suite(conformance @store@ LABELS asan LIBRARIES lockbench_conformance)"]),
    ("testbed/servers/kinds.h", 'inline constexpr Program kMemcached{"memcached", "memcached"};',
     ['inline constexpr Program k@Store@{"@store@", "@store@"};']),
    ("testbed/servers/kinds.h", "StartedServer start_memcached(Testbed& testbed, const MemcachedOptions& options = {});",
     ["", "StartedServer start_@store@(Testbed& testbed);"]),
]

TO_WRITE = """To write, in this order (docs/contributing.md#adding-a-store):
  strategies/@store@/client/connection.*        the protocol: connect, get, put if unchanged, facts, remove
  strategies/@store@/@store@_lease.cc           commands, source and traits
  testbed/servers/@store@_server.cc, kinds.h    arguments, readiness; the program and its Debian package
  deployment/@store@.cc                         setups that it cannot offer, and its faults
  tests/conformance/@store@/test_store.cc       how the suite looks into the store
  strategies/descriptor.cc                      its row of kStores, if its traits are not the default ones
  tests/hostile/@store@, tests/fuzz/@store@.cc  wrong answers
  tests/unit/strategies/url_test.cc, tests/unit/cli/options_test.cc, config_file_test.cc, packages.txt
  tests/integration/testbed/any_server_test.cc, run/tls_test.cc, neighbour_test.cc; cli/commands/simulate.cc, watch.cc
  README.md, CHANGELOG.md, docs/strategies.md, docs/operations.md
Then: ./dev strategies/@store@, ./dev conformance/@store@, ./dev lockbench hazards --strategies @store@-lease"""


def fail(why):
    sys.exit(f"new-store: {why}")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] == "--help":
        sys.exit(__doc__)
    name = sys.argv[1]
    root = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else HERE.parent)
    if not re.fullmatch("[a-z][a-z0-9]{1,30}", name):
        fail(f'"{name}" is not a name of a store; allowed: lower-case letters and digits')

    def filled(text):
        return text.replace("@store@", name).replace("@Store@", name.capitalize())

    files = {}
    for template in sorted(TEMPLATES.rglob("*.template")):
        place = str(template.relative_to(TEMPLATES))[:-len(".template")].replace("STORE", name)
        files[root / place] = filled(template.read_text())
    for file, line, added in LINES:
        path = root / file
        text = files.get(path) or path.read_text()
        if text.count(line + "\n") != 1:
            fail(f"{file} has not exactly one line {line!r}")
        files[path] = text.replace(line + "\n", "\n".join([line, *map(filled, added)]) + "\n")
    # Before the first is written.
    changed = {file for file, _, _ in LINES}
    for path in files:
        if str(path.relative_to(root)) not in changed and path.exists():
            fail(f"{path.relative_to(root)} exists")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print("changed" if str(path.relative_to(root)) in changed else "made   ", path.relative_to(root))
    print(filled(TO_WRITE))


main()
