"""The lessons of docs/lessons as notebooks for a class: `python tools/notebooks.py` writes examples/lessons/*.ipynb.

A page is the one source: its text becomes markdown cells, its Python blocks code cells. Links lead to docs/.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LESSONS, NOTEBOOKS = ROOT / "docs" / "lessons", ROOT / "examples" / "lessons"
BLOCK = re.compile(r"(?ms)^```python\n(?P<code>.*?)^```\n")


def notebook(text: str) -> dict[str, Any]:
    """The notebook of a page (nbformat 4.5)."""
    cells: list[dict[str, Any]] = []
    at = 0

    def add(kind: str, source: str) -> None:
        if source.strip():
            cell = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": source.strip()}
            cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))

    for block in BLOCK.finditer(text):
        add("markdown", text[at : block.start()].replace("](../", "](../../docs/"))
        add("code", block["code"])
        at = block.end()
    add("markdown", text[at:].replace("](../", "](../../docs/"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def pages() -> dict[str, str]:
    """{name of a notebook: its text}."""
    found = {page.stem: notebook(page.read_text(encoding="utf-8")) for page in sorted(LESSONS.glob("*.md"))}
    return {f"{name}.ipynb": json.dumps(book, indent=1, ensure_ascii=False) + "\n" for name, book in found.items()}


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for name, text in pages().items():
        (NOTEBOOKS / name).write_text(text, encoding="utf-8")
        print(NOTEBOOKS / name)
