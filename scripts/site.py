#!/usr/bin/python3
"""Makes a site with search of README.md and every page that it leads to, with the files that these link to.

Usage: site.py [FOLDER]: where the site goes; build/site without it. Needs the package mkdocs. Fails if a link leads
nowhere.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "build/site_pages"
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def linked_files():
    """README.md, and what can be reached from it."""
    found, rest = set(), [ROOT / "README.md"]
    while rest:
        file = rest.pop()
        if file in found or not file.is_relative_to(ROOT) or not file.is_file():
            continue
        found.add(file)
        if file.suffix == ".md":
            rest += [(file.parent / link).resolve() for link in LINK.findall(file.read_text())]
    return found


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__.strip())
    site = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else ROOT / "build/site"
    shutil.rmtree(PAGES, ignore_errors=True)
    for file in linked_files():
        copy = PAGES / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", ROOT / "mkdocs.yml", "--site-dir", site],
                   check=True)


if __name__ == "__main__":
    main()
