"""`pb.network`: a model as a network of components (Tokad)."""

from __future__ import annotations

from polybody.formulations.network import network_of
from polybody.model.arguments import require_model
from polybody.model.model import Model
from polybody.networks.network import Network


def network(model: Model) -> Network:
    """The mechanism as a network of components, loops included; arrays q and v of the model serve it.

    Joints that follow others do so by gears; rods, guides and relations are components that hold directions.
    """
    require_model("network", model)
    return network_of(model.mechanism, make=Network)


__all__ = ["network"]
