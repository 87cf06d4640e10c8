"""Texts keep to docs/style.md: its table of patterns is searched for in messages, docstrings, help texts and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from polybody.names import counted

ROOT = Path(__file__).resolve().parent.parent
STYLE = ROOT / "docs" / "style.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]


#: texts that are code: Python that is compiled, lines of C
CODE = re.compile(r"\bdef |[;{]\s*$")


def rules(section: str) -> list[tuple[re.Pattern[str], str]]:
    """(pattern, what to write) of one of the tables under "Checked"."""
    text = STYLE.read_text(encoding="utf-8").split(f"### {section}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) > 3
    return [(re.compile(pattern.replace("\\|", "|"), re.IGNORECASE), instead) for pattern, instead in rows]


def strings(path: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, text, whether it is a docstring) of every text of a module; values in f-strings are {}."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner, docs = set[int](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in ast.walk(node) if part is not node}
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            docs.add(id(first.value))
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value, id(node) in docs
        elif isinstance(node, ast.JoinedStr):
            parts = (str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)
            yield node.lineno, "".join(parts), False


def words(text: str) -> str:
    """Text on one line, without code: `names` in backticks and indented or fenced blocks."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    text = re.sub(r"(?m)^ {4,}\S.*$", " ", text) if "\n\n    " in text else text
    return " ".join(re.sub(r"`[^`\n]*`", "`…`", text).split())


@pytest.mark.parametrize("folder", sorted(p.name for p in (ROOT / "src" / "polybody").iterdir() if p.is_dir()))
def test_texts_of_the_code_keep_to_the_style_page(folder: str) -> None:
    everywhere, messages = rules("In every text"), rules("In messages")
    found = []
    for path in sorted((ROOT / "src" / "polybody" / folder).rglob("*.py")):
        for line, text, is_docstring in strings(path):
            if " " not in text or (CODE.search(text) and not is_docstring):
                continue
            for pattern, instead in everywhere if is_docstring else [*everywhere, *messages]:
                if match := pattern.search(words(text)):
                    found.append(f"{path.relative_to(ROOT)}:{line}: {match[0]!r}; write {instead}")
    assert found == []


#: of a script: a comment, or a text in quotes that is not markup or a shader
SCRIPT = re.compile(r"(?m)^\s*//\s*(?P<comment>.+)$|(?P<quote>[\"'`])(?P<text>(?:(?!(?P=quote)).)+)(?P=quote)")
SCRIPTS = sorted((ROOT / "src" / "polybody" / "studio").rglob("*.js"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_texts_of_the_browser_page_keep_to_the_style_page(script: Path) -> None:
    everywhere, messages = rules("In every text"), rules("In messages")
    source, found = script.read_text(encoding="utf-8"), []
    for match in SCRIPT.finditer(source):
        text = re.sub(r"\$\{[^}]*\}", "{}", match["comment"] or match["text"])
        if " " not in text or CODE.search(text) or "<" in text:
            continue
        line = source.count("\n", 0, match.start()) + 1
        for pattern, instead in everywhere if match["comment"] else [*everywhere, *messages]:
            if hit := pattern.search(text):
                found.append(f"{script.name}:{line}: {hit[0]!r}; write {instead}")
    assert found == []


def test_texts_of_scripts_are_found() -> None:
    found = [m["comment"] or m["text"] for path in SCRIPTS for m in SCRIPT.finditer(path.read_text(encoding="utf-8"))]
    assert len([text for text in found if " " in text]) > 150
    assert "this browser does not support WebGL 2" in found


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted(set((ROOT / "docs").rglob("*.md")) - {STYLE})], ids=lambda p: str(p.name)
)
def test_pages_keep_to_the_style_page(page: Path) -> None:
    text = words(page.read_text(encoding="utf-8"))
    found = [f"{match[0]!r}; write {instead}" for pattern, instead in rules("In every text")
             for match in pattern.finditer(text)]  # fmt: skip
    assert found == []


def test_patterns_catch_what_they_are_for() -> None:
    """Each pattern matches an example in the table of the page, or its own text: none is dead."""
    bad = words(STYLE.read_text(encoding="utf-8").split("## Checked")[0]).lower()
    for section in ("In every text", "In messages"):
        for pattern, _ in rules(section):
            assert pattern.search(bad), pattern.pattern


def test_counts_agree_with_their_nouns() -> None:
    assert counted(1, "loop") == "1 loop"
    assert counted(0, "loop") == "0 loops"
    assert counted(2, "body", "bodies") == "2 bodies"


#: a number that may be one, before a plural that is written out
COUNT = re.compile(
    r"\{(len\([^{}]*\)|[\w.]*\b(?:nv|nq|count))\} (?:[a-z]+ )?(?:[a-z]{3,}s|entries)\b(?! (?:are|were))"
)


def test_numbers_that_may_be_one_are_counted() -> None:
    """`{len(x)} loops` would print "1 loops": `counted(len(x), "loop")`. At limits far above one it does not matter."""
    found = []
    for path in sorted((ROOT / "src" / "polybody").rglob("*.py")):
        if path.relative_to(ROOT / "src" / "polybody").parts[0] in ("kernels", "bridges"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = COUNT.search(line)
            if match and not any(word in line[: match.end()] for word in (" of {", "== 1 else", "characters")):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert found == []
