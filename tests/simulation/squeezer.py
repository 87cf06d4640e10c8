"""Andrews' squeezing mechanism: seven bars, three loops, in a plane (Hairer & Wanner, Solving ODEs II, section VII.7).

The numbers are those of the book; joints are in the order beta, Theta, gamma, delta, phi, epsilon, Omega.
"""

from __future__ import annotations

import numpy as np

import polybody as pb

MASSES = {"K1": 0.04325, "K2": 0.00365, "K3": 0.02373, "K4": 0.00706, "K5": 0.07050, "K6": 0.00706, "K7": 0.05498}
MOMENTS = {"K1": 2.194e-6, "K2": 4.410e-7, "K3": 5.255e-6, "K4": 5.667e-7, "K5": 1.169e-5, "K6": 5.667e-7,
           "K7": 1.912e-5}  # fmt: skip
COM = {"K1": (92e-5, 0), "K2": (-115e-4, 0), "K3": (1043e-5, -1874e-5), "K4": (0, -(2e-2 - 1421e-5)),
       "K5": (2308e-5, 916e-5), "K6": (2e-2 - 1421e-5, 0), "K7": (449e-5, -1228e-5)}  # fmt: skip
A, B, C = (-0.06934, -0.00227, 0), (-0.03635, 0.03273, 0), (0.014, 0.072, 0)
TORQUE = 0.033
START = [-0.0617138900142764496, 0.0, 0.455279819163070380, 0.487364979543842550, 0.222668390165885885,
         1.23054744454982119, -0.222668390165885885]  # fmt: skip
#: at t = 0.03 s
END = [15.8107711962990, -15.7563710598430, 0.0408222401307310, 0.524409965880530, -0.534730116322695,
       1.04808074104226, 0.534730116322695]  # fmt: skip


def squeezer() -> pb.Model:
    build = pb.Builder("squeezer", gravity=(0, 0, 0))
    for name, mass in MASSES.items():
        build.body(name, mass, com=(*COM[name], 0), inertia=(MOMENTS[name], MOMENTS[name], MOMENTS[name]))
    build.joint("beta", "revolute", "world", "K1")
    build.joint("Theta", "revolute", "K1", "K2", (7e-3, 0, 0))
    build.joint("gamma", "revolute", "world", "K3", B)
    build.joint("delta", "revolute", "world", "K5", A)
    build.joint("phi", "revolute", "K5", "K4", (4e-2, 0, 0))
    build.joint("epsilon", "revolute", "world", "K7", A)
    build.joint("Omega", "revolute", "K7", "K6", (0, -4e-2, 0))
    for name, point in (("K3", (0, -35e-3, 0)), ("K4", (0, -2e-2, 0)), ("K6", (2e-2, 0, 0))):
        build.loop(f"loop {name}", "revolute", "K2", name, (-28e-3, 0, 0), point)
    build.spring("spring", "K3", (2e-2, -18e-3, 0), "world", C, 4530.0, 7785e-5)
    return build.model()


def torque(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array([TORQUE, 0, 0, 0, 0, 0, 0])
