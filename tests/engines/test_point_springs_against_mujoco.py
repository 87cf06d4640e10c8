"""Springs and dampers between points against MuJoCo's spatial tendons.

The five formulations share the force elements, so that their agreement says nothing about them: an engine that we did
not write does. A tendon from site to site pulls with stiffness · (length − springlength) and damping · (its rate).
"""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

mujoco = pytest.importorskip("mujoco")

LINKS = (("z", (0, 0, 1)), ("y", (0, 1, 0)), ("x", (1, 0, 0)))
SPRINGS = (  # name, body a, point a, body b, point b, stiffness, length, damping
    ("stay", "world", (0.4, 0.2, 0.9), "y", (0.05, 0.0, 0.2), 40.0, 0.3, 3.0),
    ("strut", "z", (0.1, -0.1, 0.1), "x", (0.0, 0.1, 0.3), 25.0, 0.2, 1.5),
    ("dashpot", "world", (-0.5, 0.3, 0.4), "x", (0.02, 0.0, 0.1), 0.0, 0.0, 2.0),
)


def ours() -> pb.Model:
    build, parent = pb.Builder("arm"), "world"
    for name, axis in LINKS:
        build.body(name, 1.5, com=(0.02, 0.01, 0.15), inertia=(0.02, 0.03, 0.01))
        build.joint(f"turn_{name}", "revolute", parent, name, (0, 0, 0.3), axis)
        parent = name
    for name, a, at_a, b, at_b, stiffness, length, damping in SPRINGS:
        build.spring(name, a, at_a, b, at_b, stiffness, length, damping)
    return build.model()


def theirs() -> tuple[object, object]:
    def numbers(values: tuple[float, ...]) -> str:
        return " ".join(map(str, values))

    sites: dict[str, str] = {}
    for name, a, at_a, b, at_b, *_ in SPRINGS:
        for end, body, at in (("a", a, at_a), ("b", b, at_b)):
            sites[body] = sites.get(body, "") + f'<site name="{name}_{end}" pos="{numbers(at)}"/>'
    inertial = '<inertial pos=".02 .01 .15" mass="1.5" diaginertia=".02 .03 .01"/>'
    chain = "".join(
        f'<body name="{name}" pos="0 0 .3"><joint axis="{numbers(axis)}"/>{inertial}{sites.get(name, "")}'
        for name, axis in LINKS
    )
    tendons = "".join(
        f'<spatial stiffness="{stiffness}" damping="{damping}" springlength="{length}">'
        f'<site site="{name}_a"/><site site="{name}_b"/></spatial>'
        for name, _, _, _, _, stiffness, length, damping in SPRINGS
    )
    text = (
        f'<mujoco><worldbody>{sites["world"]}{chain}{"</body>" * len(LINKS)}</worldbody>'
        f"<tendon>{tendons}</tendon></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("formulation", [None, *pb.formulations()], ids=str)
def test_springs_and_dampers_between_points_pull_as_mujocos_tendons(formulation: str | None) -> None:
    arm, (model, data), rng = ours(), theirs(), np.random.default_rng(0)
    for _ in range(5):
        q, v, tau = rng.normal(size=(3, arm.nv))
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        scale = np.abs(data.qfrc_passive).max()
        assert scale > 0.1  # the springs have something to say
        np.testing.assert_allclose(arm.passive_forces(q, v), data.qfrc_passive, atol=1e-12 * scale)
        a = arm.forward_dynamics(q, v, tau, formulation=formulation)
        np.testing.assert_allclose(a, data.qacc, atol=1e-9 * np.abs(data.qacc).max())
