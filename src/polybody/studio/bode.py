"""Bode plots of networks: frequency responses, impedance and admittance of ports, over the range where they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.networks.linear import admittance as port_admittance
from polybody.networks.linear import frequency_response, linearize_network
from polybody.networks.linear import impedance as port_impedance
from polybody.studio.network_results import bode_figure
from polybody.studio.plots import FORMATS

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
POINTS = 400
#: where a network has no poles to show where it changes
RANGE = (1e-1, 1e5)


@dataclass(frozen=True)
class Response:
    """A frequency response: H over ω (rad/s), what it is and its unit."""

    title: str
    unit: str
    omega: Array
    H: Array

    def figure(self) -> Any:
        """Magnitude and phase as a matplotlib figure."""
        return bode_figure(self.omega, self.H, self.title, self.unit)


def bode(
    network: Network,
    input: str | None = None,
    output: str | None = None,
    *,
    impedance: Any = None,
    admittance: Any = None,
    omega: Any = None,
    at: Mapping[str, Any] | None = None,
    path: Any = None,
    **options: Any,
) -> Any:
    """Bode plot of a network as a matplotlib figure; with a path, also written as .png, .svg or .pdf.

    Either from an input ("supply.voltage") to a variable ("load.w"), or of a port: `impedance=` or `admittance=` a node
    or a pair of nodes. `omega` are angular frequencies in rad/s, by default around the network's poles. `at` is the
    operating point; options are those of `pb.frequency_response`.
    """
    found = response(network, input, output, impedance, admittance, omega, at, **options)
    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a plot is one of {', '.join(FORMATS)}")
    figure = found.figure()
    if path is not None:
        try:
            figure.savefig(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    return figure


def response(
    network: Network, input: str | None, output: str | None, impedance: Any, admittance: Any, omega: Any,
    at: Mapping[str, Any] | None, **options: Any,
) -> Response:  # fmt: skip
    """What `bode` draws, in numbers."""
    if sum(x is not None for x in (input, impedance, admittance)) != 1 or (input is None) != (output is None):
        raise InputError("bode expects an input and an output, or one of impedance= and admittance= (a node, or two)")
    w = around_poles(network, at, **options) if omega is None else np.asarray(omega, dtype=float)
    if input is not None and output is not None:
        return Response(f"{network.name}: {input} to {output}", "", w,
                        frequency_response(network, input, output, w, at, **options))
    port, which = (impedance, 0) if impedance is not None else (admittance, 1)
    H = (port_impedance, port_admittance)[which](network, port, w, at, **options)
    nodes = (port,) if isinstance(port, str) else tuple(port)
    domain = network.nodes[next(node for node in nodes if node in network.nodes)][0]
    units = [domain.across_unit, domain.through_unit]
    unit = "Ω" if domain.name == "electrical" else f"({units[0]})/({units[1]})"
    other = "S" if domain.name == "electrical" else f"({units[1]})/({units[0]})"
    word = ("impedance", "admittance")[which]
    return Response(f"{network.name}: {word} at {' - '.join(nodes)}", (unit, other)[which], w, H)


def around_poles(network: Network, at: Mapping[str, Any] | None, **options: Any) -> Array:
    """Angular frequencies from a decade below the slowest pole to one above the fastest."""
    low, high = RANGE
    try:
        poles = np.abs(linearize_network(network, at, **options).poles())
    except PolybodyError:  # no state-space model with all of its inputs: the response itself may exist
        poles = np.zeros(0)
    moving = poles[poles > 1e-9 * poles.max(initial=0.0)]
    if len(moving):
        low, high = moving.min() / 10, moving.max() * 10
    return np.geomspace(low, high, POINTS)


__all__ = ["Response", "around_poles", "bode", "response"]
