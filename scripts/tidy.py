#!/usr/bin/env python3
"""clang-tidy on every .cc file that is not known to be clean. Usage: tidy.py [--all]

lint_clean.txt in this folder lists the clean files, each with a digest of its text, of the project files that it
includes, of its .clang-tidy and of clang-tidy's version. It is committed, so that a new clone only checks changed
files. The digest does not cover paths, packages and generated files, which differ between machines, nor the compiler's
flags. --all checks every file, regardless of the list. The list is rewritten, except in CI.

clang-tidy spends most of its time on headers, so about 25 files are checked as one translation unit, with all their
flags. A file that does not compile together with the others, because both define the same name in an anonymous
namespace, is moved to another unit.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
CLEAN_LIST = ROOT / "scripts" / "lint_clean.txt"
FILES_PER_UNIT = 25


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Sources:
    """Digests of files, over their text and all project files that they include."""

    def __init__(self):
        self.version = re.search(r"version \S+", output_of("clang-tidy", "--version"))[0]
        self.known = {}

    def includes(self, path):
        """The digest of a file's text, and the project files that it includes directly, without generated ones."""
        if path not in self.known:
            text = path.read_bytes()
            names = re.findall(rb'^\s*#include "([^"]+)"', text, re.MULTILINE)
            found = {place for place in (ROOT / name.decode() for name in names) if place.is_file()}
            self.known[path] = (hashlib.sha256(text).digest(), found)
        return self.known[path]

    def digest(self, path):
        configurations = (parent / ".clang-tidy" for parent in path.parents if parent.is_relative_to(ROOT))
        seen, todo = set(), [path, *filter(pathlib.Path.exists, configurations)]
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo.extend(self.includes(one)[1])
        texts = (self.includes(one)[0] for one in sorted(seen))
        return hashlib.sha256(self.version.encode() + b"".join(texts)).hexdigest()[:16]


def flags_of(entry):
    """The compiler's arguments without the compiler, the file and the output."""
    words = shlex.split(entry["command"])[1:]
    flags = []
    while words:
        word = words.pop(0)
        if word in ("-o", "-c"):
            words.pop(0)
        elif word != "-fpch-preprocess":
            flags.append(word + words.pop(0) if word == "-isystem" else word)
    return tuple(flags)


def work_list(wanted):
    """(file, flags, configuration) of the wanted files. Builds the generated files that they include."""
    subprocess.run([ROOT / "scripts" / "build.sh", "tidy", "-DLOCKBENCH_TESTS=ON", "--", "lockbench_generated"], check=True)
    configurations = {}
    listed = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path not in wanted:
            continue
        folder = next(parent for parent in path.parents if (parent / ".clang-tidy").exists())
        if folder not in configurations:
            dumped = output_of("clang-tidy", "--dump-config", str(path))
            # clang-tidy 14 cannot read back these defaults that it dumps.
            configurations[folder] = re.sub(r".*HungarianPrefix\n.*\n", "", dumped)
        listed[path] = (path, flags_of(entry), configurations[folder])
    missing = wanted - set(listed)
    if missing:
        sys.exit("tidy: these files belong to no target, so they cannot be checked: " + " ".join(str(path.relative_to(ROOT)) for path in sorted(missing)))
    return sorted(listed.values())


def suite_of(file):
    """The folder of a test suite. Suites share a namespace, so their files must not be mixed; rooms have their own."""
    parts = file.parent.relative_to(ROOT).parts
    return parts[:3] if parts[0] == "tests" else ()


def union(lists):
    """Each flag of any list once, in the order of the lists."""
    return list(dict.fromkeys(flag for flags in lists for flag in flags))


def unit_of(files):
    """One translation unit that includes the files."""
    return "".join(f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in files)


def check(files, flags, configuration):
    """Checks the files as one unit. Returns clang-tidy's findings, and the files that broke the unit."""
    # With this name, the analyzer treats the included files as the unit's own code.
    with tempfile.TemporaryDirectory() as folder:
        unit, config = pathlib.Path(folder) / "UnifiedSource.cc", pathlib.Path(folder) / "config"
        config.write_text(configuration)
        unit.write_text(unit_of(files))
        # Names of one file may shadow those of another; the compiler warns about shadowing within a file.
        command = ["clang-tidy", "--quiet", f"--config-file={config}", str(unit), "--", *flags, "-Wno-shadow"]
        run = subprocess.run(command, capture_output=True, text=True)
    broken = set(re.findall(r"^(/\S+?):\d+:\d+: error: .*\[clang-diagnostic-error", run.stdout, re.MULTILINE))
    text = run.stdout.strip() or run.stderr.strip() or f"clang-tidy ended with {run.returncode}"
    return text if run.returncode else "", [file for file in files if str(file) in broken]


def check_all(files, flags, configuration):
    """Checks the files, splitting units that do not compile. Returns the clean files and the findings."""
    clean, findings = [], ""
    units = [files]
    while units:
        unit = units.pop()
        found, broken = check(unit, flags, configuration)
        if found and len(unit) > 1 and "clang-diagnostic-error" in found:
            why = next(line for line in found.splitlines() if "clang-diagnostic-error" in line)
            print(f"clang-tidy: files that clash are read again: {why}", file=sys.stderr)
            # The first file has none before it to clash with, so each part is smaller than the whole.
            rest = [file for file in unit if file not in broken]
            units.extend([rest, broken] if broken and rest else [[file] for file in unit])
        elif found:
            findings += found
        else:
            clean.extend(unit)
    return clean, findings


def check_files(wanted):
    """Returns the clean files."""
    groups = {}
    for file, flags, configuration in work_list(wanted):
        modes = tuple(flag for flag in flags if not flag.startswith(("-D", "-I", "-isystem")))
        groups.setdefault((configuration, suite_of(file), modes), []).append((file, flags))
    units = []
    for (configuration, _, _), files in groups.items():
        for at in range(0, len(files), FILES_PER_UNIT):
            part = files[at:at + FILES_PER_UNIT]
            units.append(([file for file, _ in part], union(flags for _, flags in part), configuration))
    print(f"clang-tidy: {len(wanted)} files to check, in {len(units)} units", file=sys.stderr)
    all_clean = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for clean, findings in pool.map(lambda unit: check_all(*unit), units):
            all_clean.update(clean)
            if findings:
                print(findings, flush=True)
    return all_clean


def main():
    sources = Sources()
    files = [ROOT / name for name in output_of("git", "-C", str(ROOT), "ls-files", "*.cc").split()]
    entries = {file: f"{file.relative_to(ROOT)} {sources.digest(file)}" for file in files if file.exists()}
    known = set(CLEAN_LIST.read_text().splitlines()) if CLEAN_LIST.exists() and "--all" not in sys.argv else set()
    wanted = {file for file, entry in entries.items() if entry not in known}
    dirty = wanted - check_files(wanted) if wanted else set()
    if "CI" not in os.environ:
        CLEAN_LIST.write_text("".join(sorted(f"{entry}\n" for file, entry in entries.items() if file not in dirty)))
    sys.exit(1 if dirty else 0)


main()
