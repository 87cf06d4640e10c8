"""MJCF: MuJoCo compiles the file (defaults, classes, inertia from shapes), and its compiled model is translated.

Bodies and inertias, hinge, slide, ball and free joints (`mjcf_joints`), armature, damping, friction loss, springs with
their `springref`, `connect` and `weld` equalities as loops, linear `joint` equalities as couplings, sites as frames,
gravity, keyframes as configurations, motors and servos as actuators, and boxes, spheres, cylinders and capsules to
draw. Our q of a hinge or slide is MuJoCo's minus its `ref`.

    base=None        as the file says; its only root body, if free, moves by `root_joint`
    base="fixed"     that body is fixed where the file puts it
    base="floating"  the only root body, if fixed, is freed: `root_joint`

What has forces that a description cannot hold (tendons, fluids, flexes, other equalities) is named in one warning.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polybody.description.mjcf.joints import BALL, FREE, connect, place, read_joint, shift, xyzw
from polybody.description.mjcf.sources import Sources, checked_sources
from polybody.description.records import (
    WORLD,
    Actuator,
    Array,
    Body,
    Configuration,
    Coupling,
    Description,
    Frame,
    Joint,
    Loop,
    Visual,
    frozen_array,
)
from polybody.errors import InputError, warn

ROOT_JOINT = "root_joint"
#: the file that MuJoCo could not get over, if there was one
_failed: list[str] = []


def read_mjcf(path: str | os.PathLike[str], *, base: str | None = None) -> Description:
    """The description in an MJCF file (needs the package mujoco: `pip install polybody[mjcf]`)."""
    if base not in (None, "fixed", "floating"):
        raise InputError(f"base is {base!r}, expected None (as in the file), 'fixed' or 'floating'")
    path = Path(path)
    sources = checked_sources(path)
    mujoco = _mujoco(path)
    return _Reader(mujoco, _compiled(mujoco, path, sources), sources.places, path, base).description()


def _compiled(mujoco: Any, path: Path, sources: Sources) -> Any:
    """MuJoCo's model; its warnings become ours (by itself it would write them to a file in the current folder)."""
    if _failed:
        raise InputError(
            f"{path.name}: MuJoCo failed internally when it read {_failed[0]} and can read no more in this process; "
            "start a new one"
        )
    told: list[str] = []
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(told.append)
    try:
        return mujoco.MjModel.from_xml_string(sources.text, sources.files)
    except (ValueError, RuntimeError, TypeError, mujoco.FatalError) as error:
        if "unknown exception" in str(error):  # it holds a lock for ever: the next file would hang
            _failed.append(path.name)
        reason = sources.located(" ".join(str(error).split()))
        raise InputError(f"{path.name}: MuJoCo rejects the file: {reason}") from None
    finally:
        mujoco.set_mju_user_warning(previous)
        for message in dict.fromkeys(told):
            warn(f"{path.name}: MuJoCo says: {sources.located(' '.join(message.split()))}")


def _mujoco(path: Path) -> Any:
    try:
        import mujoco
    except ImportError:
        raise InputError(
            f"{path}: reading MJCF needs the package mujoco, which is not installed; pip install 'polybody[mjcf]'"
        ) from None
    return mujoco


class _Reader:
    """Goes over a compiled model."""

    def __init__(
        self, mujoco: Any, model: Any, sources: dict[tuple[str, str], str], path: Path, base: str | None
    ) -> None:
        self.mj = mujoco
        self.model = model
        self.sources = sources
        self.path = path
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        #: the joint record that holds each MuJoCo joint alone
        self.alone: dict[int, str] = {}
        #: our joints and the MuJoCo joints they hold, from the child outwards
        self.held: list[tuple[str, list[int]]] = []
        self.body_name = [WORLD, *(self._name("BODY", i, f"body{i}") for i in range(1, model.nbody))]
        self._refuse_second_world()
        #: the body whose joint to the ground `base` decides, or None
        self.root = self._find_root(base)
        self.base = base

    def _find_root(self, base: str | None) -> int | None:
        """The only body on the ground, if it is fixed or free."""
        m = self.model
        roots = [i for i in range(1, m.nbody) if m.body_parentid[i] == 0]
        fixed_or_free = [i for i in roots if m.body_jntnum[i] == 0 or m.jnt_type[m.body_jntadr[i]] == FREE]
        if len(roots) == 1 and fixed_or_free:
            return roots[0]
        free = any(m.body_jntnum[i] and m.jnt_type[m.body_jntadr[i]] == FREE for i in roots)
        if base == "floating" or (base == "fixed" and free):
            listed = ", ".join(repr(self.body_name[i]) for i in roots[:6])
            raise InputError(
                f"{self.path.name}: base={base!r} needs one body on the ground, fixed or free; on the ground are "
                f"{listed or 'no bodies'}"
            )
        return None

    def _refuse_second_world(self) -> None:
        if WORLD in self.body_name[1:]:
            where = self.sources.get(("body", WORLD), self.path.name)
            raise InputError(f"{where}: a body is named {WORLD!r}, which is the name of the ground; rename it")

    def _name(self, kind: str, index: int, default: str) -> str:
        return self.mj.mj_id2name(self.model, getattr(self.mj.mjtObj, f"mjOBJ_{kind}"), index) or default

    def _source(self, tag: str, name: str) -> str | None:
        return self.sources.get((tag, name))

    def description(self) -> Description:
        for i in range(1, self.model.nbody):
            self._read_body(i)
        loops, couplings, left_out = self._read_equalities()
        actuators, others = self._read_actuators()
        self._warn(left_out + others)
        no_gravity = self.model.opt.disableflags & self.mj.mjtDisableBit.mjDSBL_GRAVITY
        return Description(
            name=self._model_name() or self.path.stem,
            gravity=frozen_array(np.zeros(3) if no_gravity else self.model.opt.gravity),
            bodies=tuple(self.bodies),
            joints=tuple(self.joints),
            frames=tuple(self._read_sites()),
            loops=tuple(loops),
            couplings=tuple(couplings),
            actuators=tuple(actuators),
            configurations=tuple(self._read_keyframes()),
            source=str(self.path),
        )

    def _model_name(self) -> str:
        name = bytes(self.model.names).split(b"\x00", 1)[0].decode(errors="replace")
        return "" if name == "MuJoCo Model" else name

    def _read_body(self, i: int) -> None:
        m, name = self.model, self.body_name[i]
        R = place(np.zeros(3), m.body_iquat[i])[:3, :3]
        inertia = R @ np.diag(m.body_inertia[i]) @ R.T
        parent, T0 = self.body_name[int(m.body_parentid[i])], place(m.body_pos[i], m.body_quat[i])
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        source = self._source("body", name)
        if i == self.root and self.base == "floating" and count == 0:
            self.joints.append(Joint(ROOT_JOINT, "floating", WORLD, name, source=source))
        elif count == 0 or (i == self.root and self.base == "fixed"):
            called = ROOT_JOINT if i == self.root else f"{name}_fixed"
            self.joints.append(Joint(called, "fixed", parent, name, origin=frozen_array(T0), source=source))
        else:
            self._read_joints(range(first, first + count), parent, name, T0)
        self.bodies.append(
            Body(
                name=name,
                mass=float(m.body_mass[i]),
                com=frozen_array(m.body_ipos[i]),
                inertia=frozen_array((inertia + inertia.T) / 2),
                visuals=self._read_shapes(i),
                source=source,
            )
        )

    def _read_joints(self, indices: range, parent: str, body: str, T0: Array) -> None:
        read = []
        for k, j in enumerate(indices):
            name = self._name("JOINT", j, f"{body}_joint{k if len(indices) > 1 else ''}")
            source = self._source("joint", name) or self._source("freejoint", name) or self._source("body", body)
            read.append(read_joint(self.model, j, name, source))
        extra, joints = connect(read, parent, body, T0)
        if self.root is not None and body == self.body_name[self.root]:
            joints = [replace(joint, name=ROOT_JOINT) for joint in joints]
        compound = len(joints) == 1
        named = {joint.name: j for joint, j in zip(read, indices, strict=True)}
        self.held += [(joints[0].name, list(indices)[::-1])] if compound else [
            (joint.name, [named[joint.name]]) for joint in joints if joint.name in named
        ]  # fmt: skip
        if len(joints) == len(read):
            self.alone.update(zip(indices, (joint.name for joint in joints), strict=True))
        self.bodies += extra
        self.joints += joints

    def _read_shapes(self, i: int) -> tuple[Visual, ...]:
        """Simple shapes of the body; meshes and the rest are left to MuJoCo's own viewer."""
        m, kinds = self.model, self.mj.mjtGeom
        visuals: list[Visual] = []
        for g in range(int(m.body_geomadr[i]), int(m.body_geomadr[i]) + int(m.body_geomnum[i])):
            kind, (a, b, c) = int(m.geom_type[g]), (float(x) for x in m.geom_size[g])
            origin = place(m.geom_pos[g], m.geom_quat[g])
            red, green, blue, alpha = (float(x) for x in m.geom_rgba[g])
            shapes: list[tuple[str, tuple[float, ...], Array]] = []
            if kind == kinds.mjGEOM_SPHERE:
                shapes = [("sphere", (a,), origin)]
            elif kind == kinds.mjGEOM_BOX:
                shapes = [("box", (2 * a, 2 * b, 2 * c), origin)]
            elif kind == kinds.mjGEOM_CYLINDER:
                shapes = [("cylinder", (a, 2 * b), origin)]
            elif kind == kinds.mjGEOM_CAPSULE:
                ends = [("sphere", (a,), origin @ shift(np.array([0, 0, z]))) for z in (b, -b)]
                shapes = [("cylinder", (a, 2 * b), origin), *ends]
            visuals += [
                Visual(shape, frozen_array(size), frozen_array(T), color=(red, green, blue, alpha))
                for shape, size, T in shapes
            ]
        return tuple(visuals)

    def _read_sites(self) -> list[Frame]:
        m, taken = self.model, {WORLD, *(body.name for body in self.bodies)}
        frames = []
        for s in range(m.nsite):
            name = self._name("SITE", s, "")
            if not name:
                continue
            body, free = self.body_name[int(m.site_bodyid[s])], name
            while free in taken:
                free += "_site"
            taken.add(free)
            origin = frozen_array(place(m.site_pos[s], m.site_quat[s]))
            frames.append(Frame(free, body, origin, self._source("site", name)))
        return frames

    def _read_keyframes(self) -> list[Configuration]:
        """Keyframes' positions; their velocities and controls have no place in a description."""
        m, found = self.model, []
        for k in range(m.nkey):
            q = np.array(m.key_qpos[k])
            joints = tuple((name, self._numbers(indices, q)) for name, indices in self.held)
            found.append(Configuration(self._name("KEY", k, f"key{k}"), joints, self.path.name))
        return found

    def _numbers(self, indices: list[int], q: Array) -> tuple[float, ...]:
        """Our q of a joint from MuJoCo's positions."""
        m = self.model
        at = int(m.jnt_qposadr[indices[0]])
        kind = int(m.jnt_type[indices[0]])
        if kind == FREE:
            return (*q[at : at + 3].tolist(), *xyzw(q[at + 3 : at + 7]).tolist())
        if kind == BALL:
            return tuple(xyzw(q[at : at + 4]).tolist())
        return tuple(float(q[m.jnt_qposadr[j]] - m.qpos0[m.jnt_qposadr[j]]) for j in indices)

    def _read_equalities(self) -> tuple[list[Loop], list[Coupling], list[str]]:
        m, kinds = self.model, self.mj.mjtEq
        loops: list[Loop] = []
        couplings: list[Coupling] = []
        left_out: list[str] = []
        for e in range(m.neq):
            if not m.eq_active0[e]:
                continue
            kind, name = int(m.eq_type[e]), self._name("EQUALITY", e, f"equality{e}")
            if kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                loops.append(self._read_loop(e, name, kind == kinds.mjEQ_WELD))
            elif kind == kinds.mjEQ_JOINT and self._is_linear(e):
                a0, a1 = (float(x) for x in m.eq_data[e][:2])
                follower, leader = (self.alone[int(j)] for j in (m.eq_obj1id[e], m.eq_obj2id[e]))
                couplings.append(Coupling(follower, leader, a1, a0, self.path.name))
            else:
                left_out.append(f"equality {name!r}")
        return loops, couplings, left_out

    def _is_linear(self, e: int) -> bool:
        ends = (int(self.model.eq_obj1id[e]), int(self.model.eq_obj2id[e]))
        return all(j in self.alone for j in ends) and not np.any(self.model.eq_data[e][2:5])

    def _read_loop(self, e: int, name: str, weld: bool) -> Loop:
        """connect: two points stay together; weld: a frame of body 1 stays on a frame of body 2."""
        m = self.model
        one, two, data = int(m.eq_obj1id[e]), int(m.eq_obj2id[e]), m.eq_data[e]
        source = self._source("weld" if weld else "connect", name)
        kind = "fixed" if weld else "spherical"
        if int(m.eq_objtype[e]) == self.mj.mjtObj.mjOBJ_SITE:
            origins = [place(m.site_pos[s], m.site_quat[s]) for s in (one, two)]
            one, two = (int(m.site_bodyid[s]) for s in (one, two))
        elif weld:  # data: anchor in body 2, then the place of that point and of body 2's axes in body 1
            origins = [place(data[3:6], data[6:10]), shift(data[0:3])]
        else:
            origins = [shift(data[0:3]), shift(data[3:6])]
        a, b = (frozen_array(T) for T in origins)
        return Loop(name, kind, self.body_name[one], self.body_name[two], a, b, source=source)

    def _read_actuators(self) -> tuple[list[Actuator], list[str]]:
        """Motors and servos on hinges and slides; others, and those with states of their own, are left out."""
        m, mj, found, others = self.model, self.mj, [], []
        for i in range(m.nu):
            name, joint = self._name("ACTUATOR", i, f"actuator{i}"), int(m.actuator_trnid[i, 0])
            direct = int(m.actuator_trntype[i]) == mj.mjtTrn.mjTRN_JOINT and joint in self.alone
            affine = int(m.actuator_gaintype[i]) == mj.mjtGain.mjGAIN_FIXED and int(m.actuator_biastype[i]) in (
                mj.mjtBias.mjBIAS_NONE, mj.mjtBias.mjBIAS_AFFINE)  # fmt: skip
            if not direct or not affine or int(m.actuator_dyntype[i]) != mj.mjtDyn.mjDYN_NONE:
                others.append(f"actuator {name!r}")
                continue
            gear, bias = float(m.actuator_gear[i, 0]), np.zeros(3)
            if int(m.actuator_biastype[i]) == mj.mjtBias.mjBIAS_AFFINE:
                bias = np.array(m.actuator_biasprm[i, :3], dtype=float)
            bias[0] += bias[1] * gear * float(m.qpos0[m.jnt_qposadr[joint]])  # our q is MuJoCo's minus its ref
            ends = [
                frozen_array(m_range[i] if limited[i] else (-np.inf, np.inf))
                for limited, m_range in (
                    (m.actuator_ctrllimited, m.actuator_ctrlrange), (m.actuator_forcelimited, m.actuator_forcerange)
                )
            ]  # fmt: skip
            gain = float(m.actuator_gainprm[i, 0])
            ours, source = self.alone[joint], self.path.name
            found.append(Actuator(name, ours, gain, frozen_array(bias), gear, ends[0], ends[1], source=source))
        return found, others

    def _warn(self, left_out: list[str]) -> None:
        m = self.model
        told = []
        if m.ntendon and (np.any(m.tendon_stiffness) or np.any(m.tendon_damping)):
            left_out.append("springs and dampers of tendons")
        if getattr(m, "nflex", 0):
            left_out.append("flexes")
        if m.opt.density or m.opt.viscosity:
            left_out.append("the fluid around the bodies")
        if np.any(m.body_gravcomp):
            left_out.append("gravity compensation")
        if left_out:
            told.append(f"left out, because a description cannot express it: {', '.join(left_out)}")
        if told:
            warn(f"{self.path.name}: {'; '.join(told)}")


__all__ = ["read_mjcf"]
