#!/usr/bin/env python3
"""clang-tidy on every .cc file of a build directory's compile_commands.json. Usage: tidy.py BUILD_DIRECTORY

Most of clang-tidy's time goes into the headers, so about 25 files are checked as one translation unit, with the
flags of them all. A file that does not compile together with the others, because both define a name in an
anonymous namespace, is moved to another unit.

A file without findings is remembered in ${XDG_CACHE_HOME:-~/.cache}/lockbench-tidy and not checked again until
it, a project file that it includes, its flags, the configuration, clang-tidy or an installed package changes.
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
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lockbench-tidy"
FILES_PER_UNIT = 25
FORGET_AFTER_DAYS = 30


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Sources:
    """The text of a file with that of all project files it includes, generated ones too."""

    def __init__(self, folders):
        self.folders = folders
        self.known = {}

    def includes(self, path):
        if path not in self.known:
            text = path.read_bytes()
            found = set()
            for name in re.findall(rb'^\s*#include [<"]([^>"]+)[>"]', text, re.MULTILINE):
                places = (folder / name.decode() for folder in self.folders)
                found.update(place for place in places if place.is_file())
            self.known[path] = (hashlib.sha256(text).digest(), found)
        return self.known[path]

    def digest(self, path):
        seen, todo = set(), [path]
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo.extend(self.includes(one)[1])
        return b"".join(sorted(self.includes(one)[0] for one in seen))


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


def work_list(build):
    """(file, flags, configuration) of every file that git knows."""
    tracked = set(output_of("git", "-C", str(ROOT), "ls-files", "*.cc").split())
    configurations = {}
    listed = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(ROOT) or str(path.relative_to(ROOT)) not in tracked:
            continue
        folder = next(parent for parent in path.parents if (parent / ".clang-tidy").exists())
        if folder not in configurations:
            dumped = output_of("clang-tidy", "--dump-config", str(path))
            # clang-tidy 14 does not read these defaults of its own again.
            configurations[folder] = re.sub(r".*HungarianPrefix\n.*\n", "", dumped)
        listed[path] = (path, flags_of(entry), configurations[folder])
    missing = tracked - {str(path.relative_to(ROOT)) for path in listed}
    if missing:
        sys.exit("tidy: in no target, so nobody checks them: " + " ".join(sorted(missing)))
    return sorted(listed.values())


def suite_of(file):
    """The folder of a suite of tests: all suites have the same namespace. Rooms have their own."""
    parts = file.parent.relative_to(ROOT).parts
    return parts[:3] if parts[0] == "tests" else ()


def union(lists):
    """Each flag of any list once, in the order of the lists."""
    return list(dict.fromkeys(flag for flags in lists for flag in flags))


def unit_of(files):
    """Their texts as one."""
    return "".join(f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in files)


def check(files, flags, configuration):
    """Checks the files as one unit. Returns clang-tidy's findings, and the files that broke the unit."""
    # Under this name, the analyzer takes what the unit includes for its own code.
    with tempfile.TemporaryDirectory() as folder:
        unit, config = pathlib.Path(folder) / "UnifiedSource.cc", pathlib.Path(folder) / "config"
        config.write_text(configuration)
        unit.write_text(unit_of(files))
        # What one file names may shadow a name of the file before it; the compiler warns where it is in one file.
        command = ["clang-tidy", "--quiet", f"--config-file={config}", str(unit), "--", *flags, "-Wno-shadow"]
        run = subprocess.run(command, capture_output=True, text=True)
    broken = set(re.findall(r"^(/\S+?):\d+:\d+: error: .*\[clang-diagnostic-error", run.stdout, re.MULTILINE))
    text = run.stdout.strip() or run.stderr.strip() or f"clang-tidy ended with {run.returncode}"
    return text if run.returncode else "", [file for file in files if str(file) in broken]


def check_all(files, flags, configuration):
    """Checks the files in as few units as they compile in. Returns the clean files and the findings."""
    clean, findings = [], ""
    units = [files]
    while units:
        unit = units.pop()
        found, broken = check(unit, flags, configuration)
        if found and len(unit) > 1 and "clang-diagnostic-error" in found:
            why = next(line for line in found.splitlines() if "clang-diagnostic-error" in line)
            print(f"clang-tidy: files that clash are read again: {why}", file=sys.stderr)
            # The first file cannot clash with one before it, so there are fewer files in each part.
            rest = [file for file in unit if file not in broken]
            units.extend([rest, broken] if broken and rest else [[file] for file in unit])
        elif found:
            findings += found
        else:
            clean.extend(unit)
    return clean, findings


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    CACHE.mkdir(parents=True, exist_ok=True)
    for verdict in CACHE.iterdir():
        if time.time() - verdict.stat().st_mtime > FORGET_AFTER_DAYS * 86400:
            verdict.unlink(missing_ok=True)

    sources = Sources([ROOT, build / "generated", build / "proto"])
    tools = output_of("clang-tidy", "--version") + output_of("dpkg-query", "-W", "-f", "${Package} ${Version}\n")
    tools += pathlib.Path(__file__).read_text()
    verdicts, groups = {}, {}
    for file, flags, configuration in work_list(build):
        # Another checkout of the same sources has the same verdicts.
        about = "\n".join([str(file), *flags, configuration, tools]).replace(str(build), "").replace(str(ROOT), "")
        verdict = CACHE / hashlib.sha256(about.encode() + sources.digest(file)).hexdigest()
        if verdict.exists():
            verdict.touch()
        else:
            verdicts[file] = verdict
            modes = tuple(flag for flag in flags if not flag.startswith(("-D", "-I", "-isystem")))
            groups.setdefault((configuration, suite_of(file), modes), []).append((file, flags))

    units = []
    for (configuration, _, _), files in groups.items():
        for at in range(0, len(files), FILES_PER_UNIT):
            part = files[at:at + FILES_PER_UNIT]
            units.append(([file for file, _ in part], union(flags for _, flags in part), configuration))
    print(f"clang-tidy: {len(verdicts)} files to check, in {len(units)} units", file=sys.stderr)
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for clean, findings in pool.map(lambda unit: check_all(*unit), units):
            for file in clean:
                verdicts[file].touch()
            if findings:
                failed = True
                print(findings, flush=True)
    sys.exit(1 if failed else 0)


main()
