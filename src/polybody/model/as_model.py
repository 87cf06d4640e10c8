"""What simulation takes: a model, or what stands for one."""

from __future__ import annotations

from typing import Any

from polybody.errors import InputError
from polybody.model.model import Model


def as_model(given: Any) -> Model:
    """The model itself, or the one that a grasp is with its grips closed (`Grasp.closed`)."""
    found = given if isinstance(given, Model) else getattr(given, "closed", None)
    if not isinstance(found, Model):
        raise InputError(f"wanted a Model, or a Grasp made by pb.grasp, got {type(given).__name__}")
    return found


__all__ = ["as_model"]
