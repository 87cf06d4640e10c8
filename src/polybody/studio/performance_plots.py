"""Images of a machine's performance: ellipsoids on it, maps of the workspace, actuators, stiffness, modes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from polybody.design.ellipsoids import Ellipsoid
from polybody.design.performance import Performance
from polybody.design.sizing import Sizing
from polybody.design.stiffness import Modes, Stiffness
from polybody.design.task import ROWS
from polybody.design.workspace import Workspace
from polybody.errors import InputError
from polybody.names import counted
from polybody.studio.plots import STYLE

Array = np.ndarray
#: the ellipsoids of a frame
KINDS = ("velocity", "force", "acceleration", "inertia")
#: how long infinite radii are drawn, in largest finite ones
ENDLESS = 2.5
COLORS = {"velocity": "#2563eb", "force": "#dc2626", "acceleration": "#7c3aed", "inertia": "#d97706",
          "compliance": "#15803d"}  # fmt: skip


def new_figure(width: float, height: float) -> Any:
    """A figure on no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def styled(make: Any) -> Any:
    """Run a drawing function in the house style."""
    import functools

    @functools.wraps(make)
    def drawn(*args: Any, **options: Any) -> Any:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return make(*args, **options)

    return drawn


@styled
def ellipsoid_figure(found: Performance, q: Any, kinds: tuple[str, ...] = KINDS) -> Any:
    """The machine at q with ellipsoids of its frame, each drawn to the same size; titles show their radii."""
    from polybody.studio.drawing import draw_on

    place = found.model._q(q)
    columns = 2 if len(kinds) == 4 else len(kinds)
    rows = -(-len(kinds) // columns)
    figure = new_figure(4.8 * columns, 4.6 * rows)
    center = found.model.pose(place, found.frame)[:3, 3]
    for k, kind in enumerate(kinds, start=1):
        ball = getattr(found, f"{kind}_ellipsoid")(place)
        axes = figure.add_subplot(rows, columns, k, projection="3d", proj_type="ortho")
        draw_on(axes, found.model, place)
        size = 0.22 * float(np.ptp(np.array([axes.get_xlim3d(), axes.get_ylim3d(), axes.get_zlim3d()]), axis=1).max())
        surface = surface_of(ball, size)
        if surface is not None:
            X = surface + center
            axes.plot_wireframe(*np.moveaxis(X, -1, 0), color=COLORS[kind], linewidth=0.6, alpha=0.8)
        axes.set_title(f"{kind}: " + ", ".join(f"{x:.3g}" for x in ball.radii))
        axes.get_legend().remove()
    return figure


def axes_of(ball: Ellipsoid, size: float) -> Array | None:
    """Half axes in world directions as columns (3, 3) of the translational part, the largest of length `size`.

    Infinite radii (forces that the structure bears, masses that nothing moves) are drawn longer than all others.
    """
    rows = [(i, ROWS.index(name) - 3) for i, name in enumerate(ball.rows) if ROWS.index(name) >= 3]
    finite = np.isfinite(ball.radii)
    if not rows or not finite.any():
        return None
    radii = np.where(finite, ball.radii, ENDLESS * ball.radii[finite].max())
    matrix = np.zeros((3, len(ball.rows)))
    for i, axis in rows:
        matrix[axis] = (ball.axes * radii)[i]
    U, s, _ = np.linalg.svd(matrix)
    if s[0] == 0:
        return None
    return U * (size / s[0] * np.concatenate([s, np.zeros(3)])[:3])


def surface_of(ball: Ellipsoid, size: float, count: int = 24) -> Array | None:
    """Points (count, count, 3) of the translational part, its largest radius made `size`; None where it has none."""
    axes = axes_of(ball, size)
    if axes is None:
        return None
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, count), np.linspace(0, np.pi, count), indexing="ij")
    return np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], axis=-1) @ axes.T


@styled
def workspace_figure(space: Workspace, value: str = "condition") -> Any:
    """A map: of a sample places of the frame in three views, of a grid its two coordinates; coloured by a measure."""
    if value not in space.values:
        raise InputError(f"no measure {value!r}; available: {', '.join(space.values)}")
    shown = 1 / space.values[value] if value == "condition" else space.values[value]
    label = "1/condition number" if value == "condition" else value
    if space.shape:
        figure = new_figure(6.2, 5.0)
        axis = figure.subplots()
        (first, a), (second, b) = space.coordinates
        image = axis.pcolormesh(a, b, shown.reshape(space.shape).T, cmap="viridis", shading="nearest")
        near = np.where(space.reachable, space.singular, False).reshape(space.shape)
        if near.any() and not near.all():
            axis.contour(a, b, near.T.astype(float), levels=[0.5], colors="#dc2626", linewidths=1.2)
        axis.set_xlabel(first)
        axis.set_ylabel(second)
        axis.grid(False)
        axis.set_title(f"{space.task.frame}: {label}")
        figure.colorbar(image, ax=axis)
        return figure
    figure = new_figure(13.2, 4.4)
    good = space.reachable
    image = None
    for k, (i, j) in enumerate(((0, 1), (0, 2), (1, 2)), start=1):
        axis = figure.add_subplot(1, 3, k)
        image = axis.scatter(space.positions[good, i], space.positions[good, j], c=shown[good], s=4, cmap="viridis")
        axis.set_xlabel(f"{'xyz'[i]}, m")
        axis.set_ylabel(f"{'xyz'[j]}, m")
        axis.set_aspect("equal", adjustable="datalim")
    figure.suptitle(f"{space.task.frame}: {label} over {counted(int(good.sum()), 'configuration')}")
    figure.colorbar(image, ax=figure.axes)
    return figure


@styled
def sizing_figure(told: Sizing) -> Any:
    """Torques over time, torque over speed, and how much of the limits is used."""
    figure = new_figure(13.2, 4.4)
    time, plane, bars = figure.subplots(1, 3)
    for k, name in enumerate(told.names):
        time.plot(told.t, told.tau[:, k], label=name)
        plane.plot(told.v[:, k], told.tau[:, k], label=name)
    time.set_xlabel("time, s")
    time.set_ylabel("N m, N")
    time.set_title("Torques")
    plane.set_xlabel("rad/s, m/s")
    plane.set_ylabel("N m, N")
    plane.set_title("Torque over speed")
    plane.legend(fontsize=7)
    place = np.arange(len(told.names))
    bars.bar(place - 0.2, told.peak_torque, 0.4, label="peak")
    bars.bar(place + 0.2, told.rms_torque, 0.4, label="rms")
    limited = np.isfinite(told.effort)
    bars.scatter(place[limited], told.effort[limited], marker="_", s=300, color="#dc2626", label="limit")
    bars.set_xticks(place, told.names, rotation=60, ha="right", fontsize=7)
    bars.set_title("Peak, RMS, limit")
    bars.legend(fontsize=7)
    return figure


@styled
def stiffness_figure(held: Stiffness) -> Any:
    """The machine with its compliance ellipsoid: how far a force of 1 N moves the frame, in every direction."""
    from polybody.studio.drawing import draw_on

    model = held.task.model
    values, axes_of = np.linalg.eigh((held.compliance + held.compliance.T)[3:, 3:] / 2)
    ball = Ellipsoid("velocity", ("x", "y", "z"), axes_of[:, ::-1], np.abs(values[::-1]), np.zeros(3), 3)
    figure = new_figure(5.2, 5.0)
    axes = figure.add_subplot(projection="3d", proj_type="ortho")
    draw_on(axes, model, held.q)
    size = 0.22 * float(np.ptp(np.array([axes.get_xlim3d(), axes.get_ylim3d(), axes.get_zlim3d()]), axis=1).max())
    surface = surface_of(ball, size)
    if surface is not None:
        X = surface + model.pose(held.q, held.task.frame)[:3, 3]
        axes.plot_wireframe(*np.moveaxis(X, -1, 0), color=COLORS["compliance"], linewidth=0.6)
    axes.set_title("compliance, m/N: " + ", ".join(f"{x:.3g}" for x in values[::-1]))
    return figure


@styled
def modes_figure(found: Modes, count: int = 3, amplitude: float = 0.25) -> Any:
    """The machine at both ends of its lowest modes, beyond motions that nothing holds."""
    shown = [k for k in range(len(found.frequencies)) if found.frequencies[k] != 0][:count] or [0]
    figure = new_figure(4.6 * len(shown), 4.6)
    for place, k in enumerate(shown, start=1):
        axes = figure.add_subplot(1, len(shown), place, projection="3d", proj_type="ortho")
        moved = found.motion(k, amplitude, 4)
        from polybody.studio.drawing import draw_on

        for q in (moved[1], moved[3]):
            draw_on(axes, found.task.model, q)
        axes.set_title(f"mode {k + 1}: {found.frequencies[k]:.4g} Hz")
        axes.get_legend().remove()
    return figure


def animate_mode(
    found: Modes, path: str | os.PathLike[str], mode: int = 0, *, amplitude: float = 0.25, frames: int = 30
) -> Path:
    """A .gif of one period of a mode."""
    import matplotlib
    from matplotlib.animation import FuncAnimation, PillowWriter

    from polybody.studio.drawing import draw_on

    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise InputError(f"{target}: an animation is a .gif")
    motion = found.motion(mode, amplitude, frames)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.2, 5.0)
        axes = figure.add_subplot(projection="3d", proj_type="ortho")
        draw_on(axes, found.task.model, motion[0])
        box = axes.get_xlim3d(), axes.get_ylim3d(), axes.get_zlim3d()

        def draw(k: int) -> None:
            axes.clear()
            draw_on(axes, found.task.model, motion[k])
            for name, limits in zip("xyz", box, strict=True):
                getattr(axes, f"set_{name}lim3d")(limits)
            axes.get_legend().remove()
            axes.set_title(f"mode {mode + 1}: {found.frequencies[mode]:.4g} Hz")

        FuncAnimation(figure, draw, frames=frames).save(target, writer=PillowWriter(fps=20))  # type: ignore[arg-type]
    return target


__all__ = ["COLORS", "KINDS", "animate_mode", "axes_of", "ellipsoid_figure", "modes_figure", "sizing_figure",
           "stiffness_figure", "surface_of", "workspace_figure"]  # fmt: skip
