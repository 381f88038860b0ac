#!/usr/bin/env python3
"""Updates the generated tables in README.md and docs/*.md, between "<!-- reference: NAME -->" and "<!-- end -->": results
from results/reference, by `lockbench show`, and a result's fields from results/schema.json.

Usage: reference_tables.py [--check] LOCKBENCH
--check: writes nothing, and fails if a page would change.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "results/reference"
BLOCK = re.compile(r"<!-- reference: (.*?) -->.*?<!-- end -->", re.DOTALL)

# Files whose loads are shown together; table names of the second group end with -far.
NEAR = ["alone", "near-demand", "near-saturated"]
FAR = ["far-demand", "far-saturated"]

# A page has no room for more columns.
RENEWAL_COLUMNS = ["held_locks", "sections_per_second", "throughput_cost", "renewal_commands_per_second",
                   "renewal_margin_min_seconds", "renewal_slip_p99_seconds"]
QUORUM_COLUMNS = ["strategy", "nodes", "nodes_down", "nodes_frozen", "nodes_slow", "sections_per_second", "acquire_p50_seconds",
                  "acquire_p99_seconds", "commands_per_section", "granted_share"]
# Faults are only shown for this number of nodes; for other quorums only the cost.
SHOWN_NODES = 5


def reference(name):
    return json.loads((REFERENCE / f"{name}.json").read_text())


def show(lockbench, result, columns=()):
    """The Markdown of a result, without an empty line at its end."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(result, file)
        file.flush()
        chosen = ["--columns", ",".join(columns)] if columns else []
        shown = subprocess.run([lockbench, "show", file.name, "--format", "markdown", *chosen], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
    return shown.rstrip("\n")


def origin(result):
    """Machine, versions and date of the figures."""
    machine, build = result["environment"], result["lockbench"]
    words = [f"{machine['cores']} × {machine['cpu']}"] if machine["cores"] > 0 else []
    words += [f"{name} {server['version']}" for name, server in machine["servers"].items()]
    words.append(f"lockbench {build['version']} ({build['commit']}, {build['build_type']})")
    words.append(result["started_at"][:10])
    return ", ".join(words) + "."


def load_tables(lockbench, names, ending):
    """The table of each load under its name, and "conclusions" of them all."""
    files = [reference(name) for name in names]
    together = dict(files[0], runs=[run for file in files for run in file["runs"]])
    parts = show(lockbench, together).split("\n\n")
    tables = {}
    for heading, table in zip(parts, parts[1:]):
        if not heading.startswith("## "):
            continue
        load = heading[3:].split(":")[0]
        source = next(file for file in files if any(run["load"]["name"] == load for run in file["runs"]))
        tables[load + ending] = f"{table}\n\n{origin(source)}"
    tables["conclusions" + ending] = next(part for part in parts if part.startswith("- "))
    return tables


def hazard_table(lockbench):
    result = reference("hazards")
    return f"{show(lockbench, result)}\n\n{origin(result)}"


def renewal_table(lockbench):
    result = reference("renewal")
    table = show(lockbench, result, RENEWAL_COLUMNS).split("\n\n")[0]
    return f"{table}\n\n{origin(result)}"


def quorum_table(lockbench):
    """Only for a single client: contention would hide the cost of a quorum."""
    result = reference("quorum")
    runs = [run for run in result["runs"] if run["load"]["clients"] == 1]

    def parts_of(shown):
        result["runs"] = shown
        return show(lockbench, result, QUORUM_COLUMNS).split("\n\n")

    def is_healthy(nodes):
        return nodes["down"] + nodes["frozen"] + nodes["slow"] == 0

    shown = [run for run in runs
             if is_healthy(run["load"]["nodes"]) or run["load"]["nodes"]["count"] == SHOWN_NODES]
    few = [run for run in shown if run["load"]["nodes"]["count"] in (1, SHOWN_NODES)]
    return f"{parts_of(shown)[0]}\n\n{parts_of(few)[1]}\n\n{origin(result)}"


def holds(schema, part):
    """The type of a field in a word, or the names of its own fields."""
    for way in ("allOf", "anyOf"):
        part = part.get(way, [part])[0]
    part = schema["definitions"].get(part.get("$ref", "").split("/")[-1], part)
    if part is schema["definitions"]["Distribution"]:
        return "distribution"
    if part is schema["definitions"]["Run"]:
        return "runs, as below"
    if "properties" in part:
        return ", ".join(f"`{name}`" for name in part["properties"])
    if "additionalProperties" in part:
        inner = holds(schema, part["additionalProperties"])
        return f"by name: {'value' if inner == 'null' else inner}"
    kind = part.get("type", "text")
    if kind == "array":
        return f"list of {holds(schema, part['items'])}"
    kind = kind if isinstance(kind, str) else kind[0]
    return {"string": "text", "boolean": "true or false", "integer": "count"}.get(kind, kind)


def fields_table(schema, part):
    rows = ["| field | holds | meaning |", "|---|---|---|"]
    for name, field in part["properties"].items():
        definition = schema["definitions"].get(field.get("$ref", "").split("/")[-1], {})
        meaning = field.get("description") or definition["description"]
        rows.append(f"| `{name}` | {holds(schema, field)} | {meaning} |")
    return "\n".join(rows)


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__.strip())
    lockbench = arguments[-1]
    tables = {**load_tables(lockbench, NEAR, ""), **load_tables(lockbench, FAR, "-far"),
              "hazards": hazard_table(lockbench), "renewal": renewal_table(lockbench),
              "quorum": quorum_table(lockbench)}
    schema = json.loads((ROOT / "results/schema.json").read_text())
    tables["fields of a result"] = fields_table(schema, schema)
    tables["fields of a run"] = fields_table(schema, schema["definitions"]["Run"])
    wrong = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        unknown = [name for name in BLOCK.findall(text) if name not in tables]
        if unknown or text.count("<!-- reference: ") != len(BLOCK.findall(text)):
            sys.exit(f"{page}: a block without an end, or without a table: {', '.join(unknown)}; "
                     f"there are {', '.join(sorted(tables))}")
        new = BLOCK.sub(lambda block: f"<!-- reference: {block[1]} -->\n\n{tables[block[1]]}\n\n<!-- end -->", text)
        if new == text:
            continue
        wrong.append(str(page))
        if not check:
            page.write_text(new)
    if check and wrong:
        sys.exit(f"{', '.join(wrong)}: not what results/ says: scripts/reference_tables.py LOCKBENCH updates it")


if __name__ == "__main__":
    main()
