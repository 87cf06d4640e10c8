"""The tables of README.md, written from the files in results/, so that text and files cannot disagree.

    python benchmarks/tables.py    rewrites what stands between `<!-- NAME -->` and `<!-- end -->` in README.md

`TABLES` has a function for each name. A figure that misses what was aimed for is bold. results/ has the last figures of
a Zen 3 with AVX2, results/zen4/ those of a Zen 4 with AVX-512, which is not always at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from first_calls import limit

HERE = Path(__file__).resolve().parent
Rows = list[dict[str, Any]]
ROBOTS = ["UR5, nv 6", "Panda without fingers, nv 7", "Panda, nv 8", "G1, nv 35", "TALOS, nv 38"]
DYNAMICS = [
    "inverse dynamics",
    "forward dynamics",
    "mass matrix",
    "inverse dynamics derivatives",
    "forward dynamics derivatives",
    "single inverse dynamics",
]
#: ratios to Pinocchio that are aimed for on AVX2, in the order of `ROBOTS`
AIMS = {
    "inverse dynamics": [45, 35, 0, 20, 20],
    "forward dynamics": [45, 35, 0, 18, 18],
    "mass matrix": [0, 0, 0, 12, 0],
    "inverse dynamics derivatives": [45, 20, 0, 10, 0],
    "forward dynamics derivatives": [45, 20, 0, 10, 0],
}
FASTER = 1.8  # float32 against float64
ERROR = 1e-8  # m, of runs that are compared by their cost
SHOWN = 2 / 3  # first answers are listed from this part of their limit on
SOONER = ("UR5", "Panda", "G1", "TALOS", "stewart", "delta", "3-rrr", "hybrid", "bricard", "two-arms", "humanoid")


def results(name: str) -> Any:
    return json.loads((HERE / "results" / name).read_text())


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float) -> str:
    """Three digits, thousands with commas."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.1f}"


def marked(text: str, missed: bool) -> str:
    return f"**{text}**" if missed else text


def measured_on(machine: dict[str, Any]) -> str:
    """A line on the machine and the day."""
    day = f", {machine['date']}" if "date" in machine else ""
    return f"({machine['llvm_cpu']}, {machine['lanes']} lanes of float64, Python {machine['python']}{day})"


def dynamics(name: str, aims: dict[str, list[int]]) -> str:
    found = results(name)
    rows = {(row["model"], row["quantity"]): row for row in found["results"]}

    def cell(model: str, quantity: str, aim: int) -> str:
        row = rows.get((model, quantity))
        if row is None:
            return ""
        return f"{number(row['ours_ns'])} ({marked(number(row['ratio']), row['ratio'] < aim)})"

    body = [
        [quantity, *(cell(*of) for of in zip(ROBOTS, [quantity] * 5, aims.get(quantity, [0] * 5), strict=True))]
        for quantity in DYNAMICS
        if any(measured == quantity for _, measured in rows)  # older files have fewer
    ]
    return table(["ns per state (ratio)", *ROBOTS], body) + "\n\n" + measured_on(found["machine"])


def chains(name: str) -> str:
    rows = {(row["model"], row["quantity"]): row for row in results(name)["results"]}
    lengths = sorted(
        int(model.split()[-1]) for model, quantity in rows if model.startswith("chain of") and quantity == DYNAMICS[0]
    )

    def cell(length: int, quantity: str) -> str:
        row = rows[f"chain of {length}", quantity]
        return f"{row['ours_ns'] / length:.1f} ({marked(number(row['ratio']), length == 1000 and row['ratio'] < 20)})"

    body = [[quantity, *(cell(n, quantity) for n in lengths)] for quantity in DYNAMICS[:2]]
    return table(["ns per link and state (ratio)", *map(str, lengths)], body)


def others(name: str) -> str:
    """Engines in environments of their own."""
    found = results(name)
    body = [
        [
            f"{row['model']}: {row['quantity']}",
            number(row["ours_ns"]),
            row["rival"],
            number(row["rival_ns"]),
            number(row["ratio"]),
            f"{row['difference']:.0e}",
        ]
        for row in found["results"]
    ]
    head = ["", "ours, ns", "rival", "its ns", "ratio", "results differ by"]
    return table(head, body) + "\n\n" + measured_on(found["machine"])


def steps(name: str) -> str:
    """µs per step: the cheapest of the step sizes."""
    found = results(name)
    systems = {key: rows for key, rows in found["systems"].items() if rows and "who" in rows[0]}
    equal = dict.fromkeys(
        (row["who"], row["method"]) for rows in systems.values() for row in rows if "dt" in row["setting"]
    )

    def cell(rows: Rows, of: tuple[str, str]) -> str:
        times = [row["us_per_step"] for row in rows if (row["who"], row["method"]) == of and "dt" in row["setting"]]
        return number(min(times)) if times else ""

    body = [[" ".join(of), *(cell(rows, of) for rows in systems.values())] for of in equal]
    return table(["µs per step", *systems], body) + "\n\n" + measured_on(found["machine"])


def runs(name: str) -> str:
    """The cheapest run of each method whose error is small."""
    systems = {key: rows for key, rows in results(name)["systems"].items() if rows and "who" in rows[0]}
    methods = dict.fromkeys((row["who"], row["method"]) for rows in systems.values() for row in rows)

    def cell(rows: Rows, of: tuple[str, str]) -> str:
        tried = [row for row in rows if (row["who"], row["method"]) == of]
        good = [row for row in tried if row["error"] <= ERROR]
        if not good:
            return f"({min(row['error'] for row in tried):.0e} at best)" if tried else ""
        best = min(good, key=lambda row: row["seconds"])
        return f"{number(1e3 * best['seconds'])} ({best['error']:.0e})"

    body = [[" ".join(of), *(cell(rows, of) for rows in systems.values())] for of in methods]
    return table(["ms per run (error, m)", *systems], body)


def controlled(name: str) -> str:
    rows: Rows = results(name)["systems"]["controllers"]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    cells = {(row["system"], row["controller"]): row for row in rows}

    def cell(system: str, law: str) -> str:
        row = cells.get((system, law))
        return f"{number(row['us_per_step'])} ({number(row['python_us_per_step'])})" if row else ""

    laws = dict.fromkeys(row["controller"] for row in rows)
    return table(["µs per step (in Python)", *systems], [[law, *(cell(s, law) for s in systems)] for law in laws])


def single(name: str) -> str:
    found = results(name)
    models = list(dict.fromkeys(row["model"] for row in found["throughput"]))
    ratios = {(row["model"], row["quantity"]): row["float64_ns"] / row["float32_ns"] for row in found["throughput"]}
    quantities = dict.fromkeys(quantity for _, quantity in ratios)

    def cell(model: str, quantity: str) -> str:
        ratio = ratios.get((model, quantity))
        return "" if ratio is None else marked(f"{ratio:.2f}", ratio < FASTER)

    body = [[quantity.replace("_", " "), *(cell(model, quantity) for model in models)] for quantity in quantities]
    return table(["float32 against float64", *models], body) + "\n\n" + measured_on(found["machine"])


def single_loops(name: str) -> str:
    found = results(name)
    key = ["loops", "loops, every state"]
    models = list(dict.fromkeys(row["model"] for row in found[key[0]]))
    both = [
        {(row["model"], row["quantity"]): row["float64_ns"] / row["float32_ns"] for row in found[part]} for part in key
    ]

    def cell(model: str, quantity: str) -> str:
        told = [part.get((model, quantity)) for part in both]
        return ", ".join(marked(f"{ratio:.2f}", ratio < FASTER) for ratio in told if ratio is not None)

    quantities = dict.fromkeys(quantity for _, quantity in both[0])
    return table(["closed loops", *models], [[q.replace("_", " "), *(cell(m, q) for m in models)] for q in quantities])


def sweep(name: str) -> str:
    found = results(name)
    body = []
    for row in found["rows"]:
        parts, whole = row["in_chunks"], row["at_once"]
        told = (parts["median_ns"], parts["small_median_ns"], whole["again_ns"], whole["peak_over_results_mb"])
        body.append([f"{row['quantity'].replace('_', ' ')}, {row['dtype']}", *map(number, told)])
    head = [
        "ns per state, medians",
        "in chunks",
        "batches of 16,384 in turn",
        "one call, memory used before",
        "MB above results",
    ]
    return table(head, body) + "\n\n" + measured_on(found["machine"])


def first(name: str) -> str:
    """Calls that come near their limits, or miss them, on any model."""
    found = results(name)
    cells = {(row["call"], row["model"]): row for row in found["results"] if "seconds" in row}
    models = [model for model in SOONER if any(model == of for _, of in cells)]
    near = {call for (call, _), row in cells.items() if row["seconds"] > SHOWN * limit(call)}

    def cell(call: str, model: str) -> str:
        row = cells.get((call, model))
        return marked(f"{row['seconds']:.2f}", row["seconds"] > limit(call)) if row else ""

    calls = [call for call in dict.fromkeys(call for call, _ in cells) if call in near]
    late = sum(row["seconds"] > limit(call) for (call, _), row in cells.items())
    told = (
        f"{len(cells)} answers of {len({call for call, _ in cells})} calls, {late} late; calls of which every answer is"
    )
    told += " within two thirds of its limit are left out."
    body = [[call.replace("_", " "), *(cell(call, model) for model in models)] for call in calls]
    return table(["seconds", *models], body) + f"\n\n{told} {measured_on(found['machine'])}"


def rows_of_loops(name: str) -> str:
    body = [
        [
            str(row["loops"]),
            f"{row['setup_s']:.2f}",
            f"{row['compile_s']:.2f}",
            f"{row['operations']:,}",
            number(row["forward_us"]),
            number(row["step_us"]),
            f"{row['loop_error']:.0e}",
        ]
        for row in results(name)
    ]
    head = [
        "loops",
        "set-up, s",
        "compilation, s",
        "operations of forward dynamics",
        "µs per state",
        "µs per step",
        "loops closed to, m",
    ]
    return table(head, body)


TABLES: dict[str, Callable[[], str]] = {
    "dynamics": lambda: dynamics("dynamics.json", AIMS),
    "dynamics, Zen 4": lambda: dynamics("zen4/dynamics.json", {}),
    "chains": lambda: chains("dynamics.json"),
    "others": lambda: others("anchors.json"),
    "steps": lambda: steps("simulate.json"),
    "runs": lambda: runs("simulate.json"),
    "controllers": lambda: controlled("simulate.json"),
    "single": lambda: single("single.json"),
    "single, loops": lambda: single_loops("single.json"),
    "sweep": lambda: sweep("sweep.json"),
    "first answers": lambda: first("first_answers.json"),
    "rows of loops": lambda: rows_of_loops("chain.json"),
}


def filled(text: str) -> str:
    """The text with every table between its markers."""

    def written(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n\n{TABLES[found[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- (?!end )(.+?) -->\n.*?<!-- end -->", written, text, flags=re.DOTALL)


if __name__ == "__main__":
    readme = HERE / "README.md"
    readme.write_text(filled(readme.read_text()))
