"""Joints from map matrices, the graph, and the immutable tree that formulations work on."""

from polybody.mechanism.maps import JointMap, joint_kinematics
from polybody.mechanism.mechanism import GROUND, Mechanism, mechanism_from

__all__ = ["GROUND", "JointMap", "Mechanism", "joint_kinematics", "mechanism_from"]
