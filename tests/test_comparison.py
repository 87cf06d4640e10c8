"""docs/comparison.md: every name that it cites exists in the project's package; the README's table has its cells.

Pinocchio, MuJoCo and SymPy are looked up here. Drake, the Robotics Toolbox and Exudyn are looked up where an
interpreter that has them is named: DRAKE_PYTHON, RTB_PYTHON, EXUDYN_PYTHON.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
#: section of the page: (module, the variable that names an interpreter)
PROJECTS = {
    "Pinocchio": ("pinocchio", None),
    "Drake": ("pydrake", "DRAKE_PYTHON"),
    "MuJoCo": ("mujoco", None),
    "Robotics Toolbox": ("roboticstoolbox", "RTB_PYTHON"),
    "SymPy mechanics": ("sympy", None),
    "Exudyn": ("exudyn", "EXUDYN_PYTHON"),
}
#: in wheels of other builds only, as the page says
ELSEWHERE = {"pinocchio.casadi"}
LOOKUP = """
import importlib, sys
missing = []
for path in sys.argv[1:]:
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        break
    try:
        for part in parts[k:]:
            found = getattr(found, part)
    except AttributeError:
        missing.append(path)
print("missing:", *missing)
"""


def section(project: str) -> str:
    return PAGE.split(f"\n## {project}\n")[1].split("\n## ")[0]


def cells(project: str) -> list[str]:
    return [row.split(" | ")[1] for row in re.findall(r"(?m)^\| (.+) \|$", section(project))[1:]]


@pytest.mark.parametrize("project", [key for key, (_, name) in PROJECTS.items() if name is None or name in os.environ])
def test_cited_names_exist(project: str) -> None:
    module, variable = PROJECTS[project]
    if variable is None and importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    python = sys.executable if variable is None else os.environ[variable]
    names = [name for name in re.findall(rf"`({module}[\w.]+)`", section(project)) if name not in ELSEWHERE]
    assert len(names) >= 5
    done = subprocess.run([python, "-c", LOOKUP, *names], capture_output=True, text=True)
    assert done.stdout.strip() == "missing:", done.stdout + done.stderr[-2000:]


def test_table_of_the_readme_has_the_cells_of_the_page() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Comparison\n")[1].split("\n\n")[0]
    head, _, *rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()]
    assert head[-len(PROJECTS) :] == list(PROJECTS)
    for column, project in enumerate(PROJECTS):
        assert [row[column - len(PROJECTS)] for row in rows] == cells(project), project
