"""polybody: robots and mechanisms, described once.

    import polybody as pb
    model = pb.load("stanford-arm")

Names are imported when they are first used, so that `import polybody` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polybody import paths as paths
    from polybody.coordinates.conditioning import SingularTransferError as SingularTransferError
    from polybody.coordinates.inverse_kinematics import inverse_kinematics as inverse_kinematics
    from polybody.coordinates.redundancy import redundant as redundant
    from polybody.coordinates.sets import Function as Function
    from polybody.coordinates.sets import Joints as Joints
    from polybody.coordinates.sets import Orientation as Orientation
    from polybody.coordinates.sets import Pose as Pose
    from polybody.coordinates.sets import Position as Position
    from polybody.coordinates.sharing import share_load as share_load
    from polybody.coordinates.transfer import transfer as transfer
    from polybody.description.bases import Base as Base
    from polybody.errors import InputError as InputError
    from polybody.errors import PolybodyError as PolybodyError
    from polybody.errors import PolybodyWarning as PolybodyWarning
    from polybody.formulations.network import Network as Network
    from polybody.formulations.protocol import formulations as formulations
    from polybody.grasping.grasp import Grasp as Grasp
    from polybody.grasping.making import grasp as grasp
    from polybody.kernels.pool import threads as threads
    from polybody.mechanism.maps import joint_kinematics as joint_kinematics
    from polybody.model.builder import Builder as Builder
    from polybody.model.load import from_dh as from_dh
    from polybody.model.load import load as load
    from polybody.model.model import Model as Model
    from polybody.simulation import Event as Event
    from polybody.simulation import SimulationError as SimulationError
    from polybody.simulation import Trajectory as Trajectory
    from polybody.simulation import controllers as controllers
    from polybody.simulation import simulate as simulate
    from polybody.simulation.controllers import PD as PD
    from polybody.simulation.rollout import rollout as rollout

__version__ = "0.1.0.dev0"

#: public name: the module it lives in (and, for type checkers, the block above)
_WHERE = {
    "Base": "polybody.description.bases",
    "Builder": "polybody.model.builder",
    "Function": "polybody.coordinates.sets",
    "Grasp": "polybody.grasping.grasp",
    "Event": "polybody.simulation",
    "InputError": "polybody.errors",
    "Joints": "polybody.coordinates.sets",
    "Model": "polybody.model.model",
    "Network": "polybody.formulations.network",
    "Orientation": "polybody.coordinates.sets",
    "PD": "polybody.simulation.controllers",
    "PolybodyError": "polybody.errors",
    "PolybodyWarning": "polybody.errors",
    "Pose": "polybody.coordinates.sets",
    "Position": "polybody.coordinates.sets",
    "SingularTransferError": "polybody.coordinates.conditioning",
    "SimulationError": "polybody.simulation",
    "Trajectory": "polybody.simulation",
    "formulations": "polybody",
    "controllers": "polybody.simulation",
    "from_dh": "polybody.model.load",
    "inverse_kinematics": "polybody.coordinates.inverse_kinematics",
    "grasp": "polybody.grasping.making",
    "joint_kinematics": "polybody.mechanism.maps",
    "load": "polybody.model.load",
    "paths": "polybody",
    "redundant": "polybody.coordinates.redundancy",
    "share_load": "polybody.coordinates.sharing",
    "threads": "polybody.kernels.pool",
    "transfer": "polybody.coordinates.transfer",
    "rollout": "polybody.simulation.rollout",
    "simulate": "polybody.simulation",
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
