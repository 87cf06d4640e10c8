"""Five complete formulations of the equations of motion, behind one protocol.

`polybody.formulations()` returns their names, and `polybody.formulations.denoc` is one of them: the package can be
called as a function.
"""

import sys
from importlib import import_module
from types import ModuleType

from polybody.formulations.protocol import Formulation, formulation, formulations


class _Named(ModuleType):
    """A package that answers with its formulations' names when called."""

    def __call__(self) -> tuple[str, ...]:
        return formulations()

    def __getattr__(self, name: str) -> ModuleType:
        if name not in formulations():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")


sys.modules[__name__].__class__ = _Named

__all__ = ["Formulation", "formulation", "formulations"]
