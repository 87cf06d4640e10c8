"""The documentation site builds without a broken link, has every public name, and lessons are notebooks that run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import notebooks

ROOT = Path(__file__).resolve().parent.parent


def have(*packages: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in packages)


@pytest.mark.skipif(not have("mkdocs", "material", "mkdocstrings"), reason="the site needs the extra `docs`")
def test_site_builds_strictly_with_every_public_name(tmp_path: Path) -> None:
    environment = dict(os.environ, NO_MKDOCS_2_WARNING="1", PYTHONPATH=str(ROOT / "src"))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    import site_names  # beside mkdocs only

    page = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    missing = [name for name, module in site_names.public_names().items() if f'id="{module}.{name}"' not in page]
    assert missing == []
    for name in ("quickstart", "notation", "gallery", "theory/denoc", "lessons/1-saha", "coming-from/pinocchio"):
        assert (tmp_path / "site" / f"{name}.html").is_file()


def test_notebooks_are_those_of_the_lessons() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in notebooks.NOTEBOOKS.glob("*.ipynb")}
    assert written == notebooks.pages(), "run tools/notebooks.py"
    assert len(written) == 5


@pytest.mark.skipif(not have("nbclient", "nbformat", "ipykernel"), reason="notebooks need the extra `docs`")
def test_a_notebook_runs_in_its_kernel() -> None:
    import nbformat
    from nbclient import NotebookClient

    path = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))[0]  # the code of all runs in tests/test_docs.py
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    assert all(cell["execution_count"] for cell in book.cells if cell["cell_type"] == "code")
