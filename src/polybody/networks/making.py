"""`pb.network`: a model as a network of components (Tokad)."""

from __future__ import annotations

from polybody.formulations.network import network_of
from polybody.model.arguments import require_model
from polybody.model.model import Model
from polybody.networks.network import Network


def network(model: Model) -> Network:
    """Network of components of a mechanism, loops included; it accepts the arrays q and v of the model.

    Joints that follow others become gears; rods, guides and relations become constraint components.
    """
    require_model("network", model)
    return network_of(model.mechanism, make=Network)


__all__ = ["network"]
