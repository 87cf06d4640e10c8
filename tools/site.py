"""Hooks of the documentation site (mkdocs.yml): navigation, pages from outside docs/, and the API reference.

- The navigation lists folders of docs/ in a fixed order; a new page of a folder appears by itself.
- CHANGELOG.md, SECURITY.md, CONTRIBUTING.md and benchmarks/*.md become pages, examples/*.py pages of code; links
  to them from docs/ lead there.
- `api.md` has a section for every public name of the package, from its docstring.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent))
from site_names import public_names

ROOT = Path(__file__).resolve().parent.parent
#: pages from outside docs/: where they stand in the site
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md", "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md", "benchmarks/README.md": "project/benchmarks.md",
    "benchmarks/NOTES.md": "project/notes-on-benchmarks.md",
}  # fmt: skip
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#\s:]+)(?P<after>(?:#[^)\s]*)?\))")
#: the navigation: title, and pages or folders
NAVIGATION: list[tuple[str, str | list[str]]] = [
    ("Home", "README.md"),
    ("Quick start", "quickstart.md"),
    ("Notation", "notation.md"),
    ("Coming from", "coming-from"),
    ("How to", ["howto/describe-a-mechanism.md", "robot-files.md", "howto/simulate.md", "howto"]),
    ("Theory", "theory"),
    ("Lessons", "lessons"),
    ("Gallery", ["gallery.md", "machines.md", "examples"]),
    ("Reference", ["api.md", "reference", "quantities.md"]),
    ("Project", ["reliability.md", "project", "style.md"]),
]


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in docs/."""
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    for script in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{script.stem}.md", content=example_page(script)))
    files.append(File.generated(config, "api.md", content=api_page()))
    return files


def on_nav(nav: Any, config: Any, files: Files) -> Any:
    """Build the navigation from folders."""
    from mkdocs.structure.nav import get_navigation

    pages = {file.src_uri for file in files.documentation_pages()}
    taken: set[str] = set()
    told: list[Any] = []
    for title, places in NAVIGATION:
        if isinstance(places, str) and places.endswith(".md"):
            found: Any = [places] if places in pages else []
        else:
            found = []
            for place in [places] if isinstance(places, str) else places:
                inside = sorted(p for p in pages if p == place or p.startswith(f"{place}/"))
                found += [page for page in inside if page not in found]
        taken.update(found)
        if found:
            told.append({title: found[0] if isinstance(places, str) and places.endswith(".md") else found})
    lost = sorted(pages - taken)
    if lost:  # a new page beside the folders
        next(entry for entry in told if "How to" in entry)["How to"] += lost
    config.nav = told
    return get_navigation(files, config)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links that leave docs/ to the pages made of them."""
    source = page.file.src_uri
    origin = next((key for key, target in OUTSIDE.items() if target == source), None)
    folder = posixpath.dirname(f"docs/{source}" if origin is None else origin)

    def moved(match: re.Match[str]) -> str:
        where = posixpath.normpath(posixpath.join(folder, match["target"]))
        if where in OUTSIDE:
            site = OUTSIDE[where]
        elif where.startswith("examples/") and where.endswith(".py"):
            site = where[:-3] + ".md"
        elif where.startswith("docs/"):
            site = where.removeprefix("docs/")
        elif where == "README.md":
            site = "README.md"
        else:
            return match[0]
        relative = posixpath.relpath(site, posixpath.dirname(source) or ".")
        return f"{match['before']}{relative}{match['after']}"

    return LINK.sub(moved, markdown)


def example_page(script: Path) -> str:
    """A script as a page: its docstring, then its code."""
    text = script.read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(text)) or script.stem
    title, _, rest = doc.partition("\n")
    return f"# {title.rstrip('.')}\n\n{rest.strip()}\n\n```python\n{text}```\n"


def api_page() -> str:
    """Every public name, from its docstring."""
    names = public_names()
    lines = ["# API", "", "Every public name of `import polybody as pb`, from its docstring.", ""]
    for name, module in sorted(names.items(), key=lambda pair: pair[0].lower()):
        lines += [f"::: {module}.{name}", ""]
    return "\n".join(lines)


os.environ.setdefault("MPLBACKEND", "Agg")
