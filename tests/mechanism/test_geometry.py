"""Geometry as data: what loops compare themselves by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from polybody.description.records import frozen_array
from polybody.mechanism.geometry import geometry
from polybody.mechanism.mechanism import mechanism_from


@pytest.mark.parametrize("name", ["stewart", "four-bar", "3-rrr", "slider-crank"])
def test_geometry_knows_no_masses_and_every_bit_of_a_length(name: str) -> None:
    model = pb.load(name)
    mine = geometry(model.mechanism)
    heavy = model.with_payload(model.frame_names[-1], 2.0).with_gravity([0, 0, 1.0])
    assert geometry(pb.load(name).mechanism) == geometry(heavy.mechanism) == mine
    d = model.description
    last = d.loops[-1]
    origin = np.array(last.origin_b)
    origin[0, 3] = np.nextafter(origin[0, 3], np.inf)
    longer = replace(d, loops=(*d.loops[:-1], replace(last, origin_b=frozen_array(origin))))
    assert geometry(mechanism_from(longer)) != mine
    place = np.array(d.joints[0].origin)
    place[1, 3] += 1e-15
    joint = replace(d.joints[0], origin=frozen_array(place))
    assert geometry(mechanism_from(replace(d, joints=(joint, *d.joints[1:])))) != mine
