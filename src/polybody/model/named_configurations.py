"""Configurations with names: MJCF's keyframes, SDF's initial pose, the mechanism file's `configurations`."""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.model.model import Model
from polybody.names import listed, nearest

Array = np.ndarray


def configurations(model: Model) -> dict[str, Array]:
    """{name: q} of the named configurations in the model's file; "neutral" is always among them.

    Values of joints that follow others, or that the model no longer has (locked, merged), are skipped.
    """
    found = {"neutral": model.neutral()}
    slices = model.joint_slices()
    known = {joint.name for joint in model.description.joints} | set(model.followers)
    for named in model.description.configurations:
        q = model.neutral()
        for joint, numbers in named.joints:
            if joint not in slices:
                if joint not in known:
                    raise InputError(
                        f"{named.source or model.name}: configuration {named.name!r}: no joint {joint!r}"
                        f"{nearest(joint, slices)}; available: {listed(slices)}"
                    )
                continue
            place = slices[joint][0]
            if len(numbers) != place.stop - place.start:
                raise InputError(
                    f"{named.source or model.name}: configuration {named.name!r}: joint {joint!r} has "
                    f"{place.stop - place.start} numbers, got {len(numbers)}"
                )
            q[place] = numbers
        found[named.name] = model.normalize(q)
    return found


__all__ = ["configurations"]
