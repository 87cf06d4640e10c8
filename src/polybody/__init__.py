"""polybody: robots and mechanisms, described once.

    import polybody as pb
    model = pb.load("stanford-arm")

Names are imported when they are first used, so that `import polybody` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polybody.builder import Builder as Builder
    from polybody.errors import InputError as InputError
    from polybody.errors import PolybodyError as PolybodyError
    from polybody.errors import PolybodyWarning as PolybodyWarning
    from polybody.mechanism.maps import joint_kinematics as joint_kinematics
    from polybody.model.load import from_dh as from_dh
    from polybody.model.load import load as load
    from polybody.model.model import Model as Model

__version__ = "0.1.0.dev0"

#: public name: the module it lives in (and, for type checkers, the block above)
_WHERE = {
    "Builder": "polybody.builder",
    "InputError": "polybody.errors",
    "Model": "polybody.model.model",
    "PolybodyError": "polybody.errors",
    "PolybodyWarning": "polybody.errors",
    "from_dh": "polybody.model.load",
    "joint_kinematics": "polybody.mechanism.maps",
    "load": "polybody.model.load",
}

__all__ = ["__version__", *_WHERE]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'polybody' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
