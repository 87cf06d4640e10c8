"""Lines of code by folder of src/polybody: without blank lines, comments and docstrings. `make lint` prints it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "polybody"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """How many lines of a module hold code; a string over several lines that is no docstring counts them all."""
    tokens = (t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in LAYOUT)
    held = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    return len(held - docstring_lines(ast.parse(text)))


def docstring_lines(module: ast.Module) -> set[int]:
    """The lines of all docstrings."""
    lines: set[int] = set()
    for node in ast.walk(module):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def by_folder(source: Path = SOURCE) -> Counter[str]:
    """{folder: lines of code}; "." holds the modules beside the folders."""
    count: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).parts
        count[parts[0] if len(parts) > 1 else "."] += code_lines(path.read_text(encoding="utf-8"))
    return count


if __name__ == "__main__":
    found = by_folder()
    print("lines of code in src/polybody, without blank lines, comments and docstrings")
    for folder, lines in sorted(found.items()):
        print(f"{lines:7,d}  {folder}")
    print(f"{found.total():7,d}  in all")
