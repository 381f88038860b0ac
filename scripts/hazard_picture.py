#!/usr/bin/env python3
"""Draws the hazard matrix of results/reference/hazards.json in docs/hazards.svg.

Usage: hazard_picture.py [--check]
--check: writes nothing, and fails if the picture would change.
"""
import json
import pathlib
import sys
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results/reference/hazards.json"
PICTURE = ROOT / "docs/hazards.svg"

# For each outcome its kind. A new one must be added, or the script fails.
KINDS = {
    "safe": "fine", "recovers": "fine",
    "double-grant": "broken", "lost-update": "broken", "foreign-release": "broken", "foreign-renewal": "broken",
    "stuck": "stands", "self-deadlock": "stands", "unavailable": "stands", "refused": "knew", "known-loss": "knew",
    "not-applicable": None, "not-played": None,
}
# Colour, mark and meaning. The marks are for those who cannot tell the colours apart.
LOOKS = {
    "fine": ("#cde8d8", "", "no harm"),
    "knew": ("#f6dfa4", "o", "no lock, or a loss that the holder knew of in time"),
    "stands": ("#e69f00", "-", "work stands still"),
    "broken": ("#c0392b", "x", "two holders, a lost update, or another client's lock freed"),
}
LEFT, TOP, COLUMN, ROW, GAP = 250, 190, 18, 15, 6


def text(x, y, words, more=""):
    return f'<text x="{x}" y="{y}"{more}>{escape(words)}</text>'


def cell(x, y, kind):
    colour, mark, _ = LOOKS[kind]
    ink = "#ffffff" if kind == "broken" else "#1c2128"
    parts = [f'<rect x="{x}" y="{y}" width="{COLUMN - 2}" height="{ROW - 2}" fill="{colour}"/>']
    if mark:
        parts.append(text(x + COLUMN // 2 - 1, y + ROW - 5, mark, f' text-anchor="middle" fill="{ink}" font-size="10"'))
    return "".join(parts)


def draw(hazards):
    """Strategies that promise exclusion, and scenarios that harm one of them."""
    kinds = {(one["scenario"], one["strategy"]): KINDS[one["observed"]] for one in hazards}
    strategies = [name for name in dict.fromkeys(one["strategy"] for one in hazards) if name not in ("none", "local-mutex")]
    scenarios = [name for name in dict.fromkeys(one["scenario"] for one in hazards)
                 if any(kinds.get((name, strategy)) not in (None, "fine") for strategy in strategies)]
    x, places, family = LEFT, {}, None
    for strategy in strategies:
        if family not in (None, strategy.split("-")[0]):
            x += GAP
        family = strategy.split("-")[0]
        places[strategy], x = x, x + COLUMN
    width, height = x + 20, TOP + len(scenarios) * ROW + 20 + 20 * len(LOOKS)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12" fill="#1c2128" role="img">',
             "<title>Which faults break which locks</title>",
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for strategy, at in places.items():
        x, y = at + COLUMN // 2 + 3, TOP - 6
        parts.append(text(x, y, strategy, f' transform="rotate(-90 {x} {y})"'))
    for row, scenario in enumerate(scenarios):
        y = TOP + row * ROW
        parts.append(text(LEFT - 8, y + ROW - 4, scenario, ' text-anchor="end"'))
        for strategy, at in places.items():
            kind = kinds.get((scenario, strategy))
            if kind:
                parts.append(cell(at, y, kind))
    for row, (kind, (_, _, meaning)) in enumerate(LOOKS.items()):
        y = TOP + len(scenarios) * ROW + 14 + row * 20
        parts += [cell(LEFT, y, kind), text(LEFT + COLUMN + 6, y + ROW - 4, meaning)]
    return "\n".join([*parts, "</svg>", ""])


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__.strip())
    picture = draw(json.loads(RESULTS.read_text())["hazards"])
    if not arguments:
        PICTURE.write_text(picture)
    elif not PICTURE.exists() or PICTURE.read_text() != picture:
        sys.exit(f"{PICTURE}: not what {RESULTS.name} says: scripts/hazard_picture.py draws it")


if __name__ == "__main__":
    main()
