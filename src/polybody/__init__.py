"""polybody: robots and mechanisms, described once.

    import polybody as pb
    model = pb.load("stanford-arm")

Names are imported when they are first used, so that `import polybody` stays light. `__init__.pyi` lists them, once.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from polybody import importing as _importing  # noqa: F401 what it asks of forks holds from now on
from polybody import outlets as _outlets
from polybody.garbage import uncollected as _uncollected

_outlets.offer("run", "polybody.studio.conveniences")
_outlets.offer("model", "polybody.studio.conveniences")
_outlets.offer("network_run", "polybody.studio.network_results")
_outlets.offer("identification", "polybody.studio.identification_report")

__version__ = "0.1.0"

_LIST = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
#: public name: the module it lives in
_WHERE = {x.name: line.module for line in _LIST if isinstance(line, ast.ImportFrom) for x in line.names}

__all__ = ["__version__", *_WHERE]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'polybody' has no attribute {name!r}")
    with _uncollected():
        held = None if where == __name__ else getattr(import_module(where), name, None)
        # a module of that name, or what it holds; `formulations` is a package that can be called
        value: Any = import_module(f"{where}.{name}") if held is None else sys.modules.get(f"{__name__}.{name}", held)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
