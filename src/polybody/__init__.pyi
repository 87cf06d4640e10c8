# The one list of public names. `__init__.py` reads it at run time, type checkers read it as it is.
from polybody import paths as paths
from polybody.bridges.c_library import export_c as export_c
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
from polybody.linearization import linearize as linearize
from polybody.mechanism.maps import joint_kinematics as joint_kinematics
from polybody.model.builder import Builder as Builder
from polybody.model.load import from_dh as from_dh
from polybody.model.load import load as load
from polybody.model.model import Model as Model
from polybody.model.networks import network as network
from polybody.simulation import Event as Event
from polybody.simulation import SimulationError as SimulationError
from polybody.simulation import Trajectory as Trajectory
from polybody.simulation import controllers as controllers
from polybody.simulation import simulate as simulate
from polybody.simulation.controllers import PD as PD
from polybody.simulation.rollout import rollout as rollout

__version__: str
