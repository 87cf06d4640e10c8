"""Code that the documentation shows must run: every ```python block of README.md and docs/, a file in one namespace.
Reference pages say what docstrings and the table of quantities say (`tools/reference.py`): no public name is missing.

A block whose fence says `python no-run` is skipped: it needs something a test machine lacks (a browser, a user's file).
"""

from __future__ import annotations

import os
import re
import subprocess
import traceback
from pathlib import Path
from typing import NamedTuple

import pytest

import polybody as pb
import reference
from polybody.quantities.table import FAMILIES, QUANTITIES

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ \t]*$")


class Block(NamedTuple):
    line: int  # where its code starts in the page
    code: str


def runnable_blocks(text: str) -> list[Block]:
    """The python blocks of a page, without those tagged no-run."""
    blocks = []
    for fence in FENCE.finditer(text):
        words = fence["info"].split()
        if words[:1] == ["python"] and "no-run" not in words[1:]:
            indent = fence["indent"]
            code = "".join(line.removeprefix(indent) for line in fence["body"].splitlines(keepends=True))
            blocks.append(Block(text.count("\n", 0, fence.start("body")) + 1, code))
    return blocks


def run(blocks: list[Block], page: str) -> dict[str, object]:
    """Execute blocks one after the other; tracebacks name the page and its line."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks:
        exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), namespace)
    return namespace


WITH_CODE = [page for page in PAGES if runnable_blocks(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = runnable_blocks(page.read_text(encoding="utf-8"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)  # what a page writes does not land in the repository
    run(blocks, str(page))


#: "coming from" pages whose other library needs an interpreter of its own, where a variable names one
ELSEWHERE = {"DRAKE_PYTHON": ("drake", "pydrake"), "RTB_PYTHON": ("robotics-toolbox", "roboticstoolbox")}
if any(name in os.environ for name in ELSEWHERE):

    @pytest.mark.parametrize("variable", [name for name in ELSEWHERE if name in os.environ])
    def test_calls_of_the_other_library_agree_where_an_interpreter_has_it(variable: str) -> None:
        """Both halves of a "coming from" page, in the interpreter that the variable names."""
        page, module = ELSEWHERE[variable]
        blocks = runnable_blocks((ROOT / "docs" / "coming-from" / f"{page}.md").read_text(encoding="utf-8"))
        code = "\n".join(block.code for block in blocks) + f"\nimport sys\nassert {module!r} in sys.modules\n"
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "src"))
        done = subprocess.run([os.environ[variable], "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_page_lead_to_files(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose)]
    local = [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", reference.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_reference_page_is_what_the_code_says_today(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == reference.rewritten(text), f"{page.name} is not up to date: `make docs` writes it"


def test_every_public_name_of_a_model_and_its_namespaces_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "model.md").read_text(encoding="utf-8")
    model = pb.load("double-pendulum")
    names = [f"model.{name}" for name in dir(model) if not name.startswith("_")]
    for space in reference.NAMESPACES:
        names += [f"model.{space}.{name}" for name in dir(getattr(model, space)) if not name.startswith("_")]
    assert [name for name in names if not re.search(rf"(?m)^\*\*`{re.escape(name)}[`(]", page)] == []


def test_every_quantity_is_in_the_table_of_the_documentation() -> None:
    page = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    assert [name for name in (*QUANTITIES, *FAMILIES) if not re.search(rf"(?m)^\| `{name}[`:\[]", page)] == []
    assert [x.name for x in QUANTITIES.values() if not (x.doc and x.group)] == []


def test_the_public_surface_of_a_model_is_small_and_documented() -> None:
    model = pb.load("double-pendulum")
    assert len(type(model).__mro__) <= 3  # Model, at most one base, object
    assert len([name for name in dir(model) if not name.startswith("_")]) <= 60
    for space, cls in reference.NAMESPACES.items():
        assert type(getattr(model, space)) is cls
        assert len(reference.public(cls)) <= 20
    spaces = {"model": type(model), **reference.NAMESPACES}
    silent = [f"{space}.{name}" for space, cls in spaces.items() for name in reference.public(cls)
              if not (getattr(cls, name).__doc__ or "").strip()]  # fmt: skip
    assert silent == []


SAMPLE = """\
text
```python
x = 1
```
```python no-run
raise RuntimeError("never run")
```
```bash
exit 1
```
- in a list
  ```python
  if x:
      y = x + 1
  ```
"""


def test_blocks_share_a_namespace_and_no_run_is_skipped() -> None:
    assert run(runnable_blocks(SAMPLE), "sample.md")["y"] == 2


def test_failing_block_is_reported_at_its_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(runnable_blocks("one\n\n```python\na = 0\n1 // a\n```\n"), "sample.md")
    place = traceback.extract_tb(caught.tb)[-1]
    assert (place.filename, place.lineno) == ("sample.md", 5)
