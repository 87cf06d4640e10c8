"""`pb.network`: a model as a network of components (Tokad)."""

from __future__ import annotations

from polybody.errors import PolybodyError
from polybody.formulations.network import Network, network_of
from polybody.model.arguments import require_model
from polybody.model.model import Model


def network(model: Model) -> Network:
    """The mechanism as a network of components, loops included; arrays q and v of the model serve it.

    What a network has no component for is refused by name.
    """
    require_model("network", model)
    m = model.mechanism
    others = [f"{kind} {x.name!r}" for kind in ("rod", "guide", "relation") for x in getattr(m, f"{kind}s")]
    others += [f"follower {name!r}" for name in m.followers]
    if others:
        raise PolybodyError(f"a network has no component for {', '.join(others)}; model.tree is without constraints")
    return network_of(m)


__all__ = ["network"]
