"""A `Model` as a part of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polybody.networks.component import Component

if TYPE_CHECKING:
    from polybody.networks.network import Network


class ModelComponent:
    name: str


def flat_components(net: Network) -> list[Component]:
    return list(net.components.values())
