"""polybody: robots and mechanisms, described once.

    import polybody as pb
    model = pb.load("stanford-arm")

Names are imported when they are first used, so that `import polybody` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polybody.analysis import controllers as controllers
    from polybody.analysis import paths as paths
    from polybody.analysis.controllers import PD as PD
    from polybody.analysis.coordinates.conditioning import SingularTransferError as SingularTransferError
    from polybody.analysis.coordinates.redundancy import redundant as redundant
    from polybody.analysis.coordinates.sets import Function as Function
    from polybody.analysis.coordinates.sets import Joints as Joints
    from polybody.analysis.coordinates.sets import Orientation as Orientation
    from polybody.analysis.coordinates.sets import Pose as Pose
    from polybody.analysis.coordinates.sets import Position as Position
    from polybody.analysis.coordinates.sharing import share_load as share_load
    from polybody.analysis.coordinates.transfer import transfer as transfer
    from polybody.analysis.inverse_kinematics import inverse_kinematics as inverse_kinematics
    from polybody.analysis.rollout import rollout as rollout
    from polybody.analysis.simulate import Event as Event
    from polybody.analysis.simulate import SimulationError as SimulationError
    from polybody.analysis.simulate import Trajectory as Trajectory
    from polybody.analysis.simulate import simulate as simulate
    from polybody.builder import Builder as Builder
    from polybody.description.bases import Base as Base
    from polybody.errors import InputError as InputError
    from polybody.errors import PolybodyError as PolybodyError
    from polybody.errors import PolybodyWarning as PolybodyWarning
    from polybody.formulations.network import Network as Network
    from polybody.formulations.protocol import formulations as formulations
    from polybody.kernels.pool import threads as threads
    from polybody.mechanism.maps import joint_kinematics as joint_kinematics
    from polybody.model.grasp_making import grasp as grasp
    from polybody.model.grasping import Grasp as Grasp
    from polybody.model.load import from_dh as from_dh
    from polybody.model.load import load as load
    from polybody.model.model import Model as Model

__version__ = "0.1.0.dev0"

#: public name: the module it lives in (and, for type checkers, the block above)
_WHERE = {
    "Base": "polybody.description.bases",
    "Builder": "polybody.builder",
    "Function": "polybody.analysis.coordinates.sets",
    "Grasp": "polybody.model.grasping",
    "Event": "polybody.analysis.simulate",
    "InputError": "polybody.errors",
    "Joints": "polybody.analysis.coordinates.sets",
    "Model": "polybody.model.model",
    "Network": "polybody.formulations.network",
    "Orientation": "polybody.analysis.coordinates.sets",
    "PD": "polybody.analysis.controllers",
    "PolybodyError": "polybody.errors",
    "PolybodyWarning": "polybody.errors",
    "Pose": "polybody.analysis.coordinates.sets",
    "Position": "polybody.analysis.coordinates.sets",
    "SingularTransferError": "polybody.analysis.coordinates.conditioning",
    "SimulationError": "polybody.analysis.simulate",
    "Trajectory": "polybody.analysis.simulate",
    "formulations": "polybody",
    "controllers": "polybody.analysis",
    "from_dh": "polybody.model.load",
    "inverse_kinematics": "polybody.analysis.inverse_kinematics",
    "grasp": "polybody.model.grasp_making",
    "joint_kinematics": "polybody.mechanism.maps",
    "load": "polybody.model.load",
    "paths": "polybody.analysis",
    "redundant": "polybody.analysis.coordinates.redundancy",
    "share_load": "polybody.analysis.coordinates.sharing",
    "threads": "polybody.kernels.pool",
    "transfer": "polybody.analysis.coordinates.transfer",
    "rollout": "polybody.analysis.rollout",
    "simulate": "polybody.analysis.simulate",
}

__all__ = ["__version__", *_WHERE]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        where = _WHERE[name]
        found = None if where == "polybody" else getattr(import_module(where), name, None)
        value = import_module(f"{where}.{name}") if found is None else found  # a module of that name, or what it holds
        globals()[name] = value
        return value
    raise AttributeError(f"module 'polybody' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
