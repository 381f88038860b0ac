#!/usr/bin/env python3
"""Draws the figures of sweep.sh: commands per second by the number of clients.

Usage: sweep_picture.py FIGURES.csv PICTURE.svg
"""

import csv
import math
import sys

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 140, 30, 50
# Colours that remain apart for the colour-blind (Okabe and Ito).
CURVES = [
    ("lockbench", "lockbench", "#0072b2"),
    ("redis_benchmark", "redis-benchmark", "#666666"),
]


def read(path):
    """Rows of numbers; None where a figure is missing."""
    with open(path, newline="") as file:
        return [
            {name: None if text == "-" else float(text) for name, text in row.items()}
            for row in csv.DictReader(file)
        ]


def nice_step(top):
    """The distance of about five grid lines up to `top`."""
    rough = top / 5
    power = 10 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough)


def text(x, y, words, anchor="middle", colour="#333333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def draw(rows):
    most = max(row[name] for row in rows for name, _, _ in CURVES if row[name] is not None)
    step = nice_step(most)
    top = math.ceil(most / step) * step
    longest = max(math.log10(rows[-1]["clients"]), 1)

    def x_of(clients):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(clients) / longest

    def y_of(rate):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        "<title>Commands per second by the number of clients</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, TOP - 12, "commands per second", "start"),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "clients"),
    ]
    for line in range(round(top / step) + 1):
        y = y_of(line * step)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(text(LEFT - 8, y + 4, f"{line * step:,.0f}", "end"))
    labelled = -math.inf
    for clients in sorted(row["clients"] for row in rows):
        label = f"{clients:g}" if clients < 1000 else f"{clients / 1000:g}k"
        if x_of(clients) - labelled < 24:  # labels must not overlap
            continue
        labelled = x_of(clients)
        parts.append(text(labelled, HEIGHT - BOTTOM + 18, label))
    labels = []
    for name, label, colour in CURVES:
        points = [(x_of(row["clients"]), y_of(row[name])) for row in rows if row[name] is not None]
        if not points:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        labels.append((points[-1][1], label, colour))
    last = -math.inf
    for y, label, colour in sorted(labels):
        last = max(y, last + 16)  # nor those of close curves
        parts.append(text(WIDTH - RIGHT + 10, last + 4, label, "start", colour))
    return "\n".join([*parts, "</svg>", ""])


def main():
    figures, picture = sys.argv[1:]
    with open(picture, "w") as file:
        file.write(draw(read(figures)))


if __name__ == "__main__":
    main()
