"""The stage drawn off screen by VTK: bodies, floor with a grid, shadows, ghosts and paths, seen as on the page.

Shadows on the floor are the bodies themselves, flattened along the light's direction s onto the plane n·x = h,

    P x = x − s (n·x − h) / (n·s)

drawn in one opaque colour just above the floor: exact outlines on every graphics driver, software ones included.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import PolybodyError
from polybody.studio.stage.stage import Stage

Array = np.ndarray
FOV = 32.0  # degrees, as on the page
THEMES = {
    "light": {"top": (0.975, 0.982, 0.992), "bottom": (0.885, 0.905, 0.935), "floor": (0.93, 0.942, 0.96),
              "line": (0.80, 0.83, 0.875), "shadow": (0.77, 0.79, 0.83)},
    "dark": {"top": (0.085, 0.10, 0.13), "bottom": (0.14, 0.16, 0.20), "floor": (0.155, 0.18, 0.215),
             "line": (0.25, 0.285, 0.335), "shadow": (0.075, 0.09, 0.11)},
}  # fmt: skip
TINTS = ((0.15, 0.39, 0.92), (0.92, 0.45, 0.1), (0.1, 0.62, 0.4), (0.6, 0.3, 0.8), (0.8, 0.2, 0.35))


def toolkit() -> Any:
    """VTK's parts that are needed, or how to get them."""
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")  # no window system is asked for
    try:
        import vtkmodules.vtkInteractionStyle
        import vtkmodules.vtkRenderingOpenGL2  # noqa: F401
        from vtkmodules import vtkCommonCore, vtkCommonDataModel, vtkCommonMath, vtkRenderingCore
        from vtkmodules.util import numpy_support
    except ImportError as error:
        raise PolybodyError(f"rendering needs the package vtk ({error}): pip install 'polybody[render]'") from None

    class Toolkit:
        core, data, math, drawing, arrays = (
            vtkCommonCore,
            vtkCommonDataModel,
            vtkCommonMath,
            vtkRenderingCore,
            numpy_support,
        )

    return Toolkit


class Raster:
    """An image of the stage. `view` is (azimuth, elevation) in radians, `zoom` larger than 1 comes nearer."""

    def __init__(
        self, stage: Stage, width: int, height: int, *, theme: str = "light", view: tuple[float, float] | None = None,
        ghosts: int = 0, zoom: float = 1.0, floor: bool = True,
    ) -> None:  # fmt: skip
        from polybody.studio.viewer.content import best_view

        self.vtk, self.stage, self.theme = toolkit(), stage, THEMES[theme]
        vtk = self.vtk
        self.renderer = vtk.drawing.vtkRenderer()
        self.window = vtk.drawing.vtkRenderWindow()
        self.window.SetOffScreenRendering(1)
        self.window.SetMultiSamples(8)
        self.window.SetSize(width, height)
        self.window.AddRenderer(self.renderer)
        self.renderer.SetBackground(*self.theme["bottom"])
        self.renderer.SetBackground2(*self.theme["top"])
        self.renderer.GradientBackgroundOn()
        self.across = _unit(np.cross([0.0, 1.0, 0.0] if abs(stage.up[1]) < 0.9 else [0.0, 0.0, 1.0], stage.up))
        self.ahead = np.cross(stage.up, self.across)
        self.sun = _unit(stage.up + 0.06 * self.across - 0.55 * self.ahead)
        self._lights()
        if floor:
            self._floor()
        self.actors = [self._figures(None) for _ in range(1)] + [
            self._figures(TINTS[(k + 1) % len(TINTS)]) for k in range(ghosts)
        ]
        self.shadows = self._shadows() if floor else []
        self._aim(best_view(stage) if view is None else list(view), width / height, zoom)
        self.filter = vtk.drawing.vtkWindowToImageFilter()
        self.filter.SetInput(self.window)
        self.filter.ReadFrontBufferOff()

    # What is on it.

    def _poly(self, positions: Array, faces: Array, normals: Array | None = None, colors: Array | None = None) -> Any:
        vtk = self.vtk
        poly, points, cells = vtk.data.vtkPolyData(), vtk.core.vtkPoints(), vtk.data.vtkCellArray()
        points.SetData(vtk.arrays.numpy_to_vtk(np.ascontiguousarray(positions, dtype=np.float32), deep=True))
        cells.SetData(
            3, vtk.arrays.numpy_to_vtkIdTypeArray(np.ascontiguousarray(faces, dtype=np.int64).ravel(), deep=True)
        )
        poly.SetPoints(points)
        poly.SetPolys(cells)
        if normals is not None:
            poly.GetPointData().SetNormals(
                vtk.arrays.numpy_to_vtk(np.ascontiguousarray(normals, np.float32), deep=True)
            )
        if colors is not None:
            poly.GetPointData().SetScalars(vtk.arrays.numpy_to_vtk(np.ascontiguousarray(colors, np.uint8), deep=True))
        return poly

    def _actor(self, poly: Any, color: Sequence[float], *, flat: bool = False, opacity: float = 1.0) -> Any:
        mapper, actor = self.vtk.drawing.vtkPolyDataMapper(), self.vtk.drawing.vtkActor()
        mapper.SetInputData(poly)
        actor.SetMapper(mapper)
        look = actor.GetProperty()
        look.SetColor(*color)
        look.SetOpacity(opacity)
        look.SetInterpolationToPhong()
        if flat:
            look.LightingOff()
        else:
            look.SetAmbient(0.36)
            look.SetDiffuse(0.86)
            look.SetSpecular(0.16)
            look.SetSpecularPower(36)
        self.renderer.AddActor(actor)
        return actor

    def _figures(self, tint: Sequence[float] | None) -> list[tuple[int, Any]]:
        """(body, actor) of every part; ghosts are see-through and of one colour."""
        found = []
        for index, figure in enumerate(self.stage.figures):
            for part in figure.parts:
                mesh = part.mesh
                colors = mesh.colors if tint is None else None
                poly = self._poly(mesh.positions, mesh.faces, mesh.normals, colors)
                color = [c / 255 for c in part.color] if tint is None else tint
                found.append((index, self._actor(poly, color, opacity=1.0 if tint is None else 0.35)))
        return found

    def _shadows(self) -> list[tuple[int, Any]]:
        found = []
        for index, figure in enumerate(self.stage.figures):
            for part in figure.parts:
                poly = self._poly(part.mesh.positions, part.mesh.faces)
                found.append((index, self._actor(poly, self.theme["shadow"], flat=True)))
        return found

    def _lights(self) -> None:
        self.renderer.RemoveAllLights()
        self.renderer.AutomaticLightCreationOff()
        side = 0.9 * self.across - 0.1 * self.ahead + 0.4 * self.stage.up
        for direction, strength in ((self.sun, 0.82), (side, 0.42), (-self.stage.up, 0.12)):
            light = self.vtk.drawing.vtkLight()
            light.SetLightTypeToSceneLight()
            light.SetPositional(False)
            light.SetPosition(*(1e3 * np.asarray(direction)))
            light.SetFocalPoint(0, 0, 0)
            light.SetIntensity(strength)
            self.renderer.AddLight(light)

    def _floor(self) -> None:
        """A disc that fades into the background, and the lines of a grid."""
        stage = self.stage
        radius = 2.6 * max(stage.span, stage.size)
        middle = stage.middle + stage.up * (stage.ground - stage.middle @ stage.up)
        rings, sides = 24, 72
        angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)
        around = np.cos(angle)[:, None] * self.across + np.sin(angle)[:, None] * self.ahead
        r = np.linspace(0, 1, rings + 1)
        lift = -2e-3 * stage.size * stage.up
        points = (middle + lift + (radius * r)[:, None, None] * around).reshape(-1, 3)
        i, j = sides * np.arange(rings)[:, None], np.arange(sides)
        inner, outer, after = i + j, i + sides + j, (j + 1) % sides
        faces = np.stack([inner, outer, i + sides + after, inner, i + sides + after, i + after], axis=-1).reshape(-1, 3)
        fade = np.clip(1 - r**2, 0, 1)
        color = np.column_stack(
            [np.tile(np.array(self.theme["floor"]) * 255, (len(points), 1)), np.repeat(fade * 235, sides)]
        )
        self._actor(self._poly(points, faces, colors=color), (1, 1, 1), flat=True)
        from polybody.studio.stage.sizes import round_down

        cell = round_down(0.5 * stage.size) / 5
        count = int(0.9 * radius / cell)
        lines = [
            self._grid_lines(axis, other, np.round(middle @ axis / cell) * cell + cell * np.arange(-count, count + 1),
                             middle, radius, cell)
            for axis, other in ((self.across, self.ahead), (self.ahead, self.across))
        ]  # fmt: skip
        quads, shades, seen = (np.stack(both, axis=1) for both in zip(*lines, strict=True))
        quads, shades = quads[seen].reshape(-1, 3), shades[seen].ravel()
        colors = np.column_stack([np.tile(255 * np.array(self.theme["line"]), (len(shades), 1)), shades])
        first = 4 * np.arange(len(quads) // 4)[:, None]
        faces = np.concatenate([first + np.array([0, 1, 2]), first + np.array([0, 2, 3])])
        self._actor(self._poly(quads, faces, colors=colors), (1, 1, 1), flat=True)

    def _grid_lines(
        self, axis: Array, other: Array, places: Array, middle: Array, radius: float, cell: float
    ) -> tuple[Array, Array, Array]:
        """Lines along `other` at places on `axis`: quads (lines, pieces, 4, 3), how opaque their corners are, and which
        lines cross the disc."""
        size, up = self.stage.size, self.stage.up
        off = places - middle @ axis
        half = np.sqrt(np.maximum((0.9 * radius) ** 2 - off**2, 0))
        thick = 0.0011 * size * np.where(np.rint(places / cell) % 5 == 0, 1.7, 0.8)
        steps = np.linspace(-half, half, 25, axis=1)
        along = np.stack([steps[:, :-1], steps[:, 1:], steps[:, 1:], steps[:, :-1]], axis=-1)
        beside = off[:, None] + thick[:, None] * np.array([-1.0, -1.0, 1.0, 1.0])
        quads = middle - 0.8e-3 * size * up + along[..., None] * other + beside[:, None, :, None] * axis
        far = np.hypot(along, off[:, None, None]) / radius
        return quads, 230 * np.maximum(0.0, 1 - (far / 0.9) ** 1.5), half > 0

    def add_path(self, points: Array, color: Sequence[float] = (0.92, 0.42, 0.08)) -> None:
        """A line through points (n, 3)."""
        from vtkmodules.vtkFiltersCore import vtkTubeFilter

        vtk = self.vtk
        place, cells, poly = vtk.core.vtkPoints(), vtk.data.vtkCellArray(), vtk.data.vtkPolyData()
        place.SetData(vtk.arrays.numpy_to_vtk(np.ascontiguousarray(points, dtype=np.float32), deep=True))
        line = vtk.data.vtkPolyLine()
        line.GetPointIds().SetNumberOfIds(len(points))
        for k in range(len(points)):
            line.GetPointIds().SetId(k, k)
        cells.InsertNextCell(line)
        poly.SetPoints(place)
        poly.SetLines(cells)
        tube = vtkTubeFilter()
        tube.SetInputData(poly)
        tube.SetRadius(0.0045 * self.stage.size)
        tube.SetNumberOfSides(10)
        tube.Update()
        self._actor(tube.GetOutput(), color)

    def _aim(self, view: Sequence[float], aspect: float, zoom: float) -> None:
        """The camera of the page: all corners of the box within the frame."""
        azimuth, elevation = view
        out = (
            np.cos(elevation) * (np.cos(azimuth) * self.across + np.sin(azimuth) * self.ahead)
            + np.sin(elevation) * self.stage.up
        )
        right = _unit(np.cross(-out, self.stage.up))
        top = np.cross(right, -out)
        tall = np.tan(np.deg2rad(FOV) / 2)
        low, high = self.stage.low, self.stage.high
        distance = 0.05
        for k in range(8):
            corner = np.where([k & 1, k & 2, k & 4], high, low) - self.stage.middle
            back = corner @ out
            distance = max(distance, back + abs(corner @ right) / (tall * aspect), back + abs(corner @ top) / tall)
        camera = self.renderer.GetActiveCamera()
        camera.SetFocalPoint(*self.stage.middle)
        camera.SetPosition(*(self.stage.middle + 1.12 / zoom * distance * out))
        camera.SetViewUp(*self.stage.up)
        camera.SetViewAngle(FOV)

    # Pictures.

    def picture(self, q: Array, ghosts: Sequence[Array] = ()) -> Array:
        """(height, width, 3) bytes of a configuration, with others beside it."""
        for actors, state in zip(self.actors, (q, *ghosts), strict=True):
            T = [*self.stage.matrices(np.asarray(state, dtype=float)), np.eye(4)]
            for body, actor in actors:
                actor.SetUserMatrix(self._matrix(T[body]))
        if self.shadows:
            T = [*self.stage.matrices(np.asarray(q, dtype=float)), np.eye(4)]
            flatten = self._flattening()
            for body, actor in self.shadows:
                actor.SetUserMatrix(self._matrix(flatten @ T[body]))
        self.renderer.ResetCameraClippingRange()
        self.window.Render()
        self.filter.Modified()
        self.filter.Update()
        image = self.filter.GetOutput()
        width, height, _ = image.GetDimensions()
        pixels = self.vtk.arrays.vtk_to_numpy(image.GetPointData().GetScalars()).reshape(height, width, -1)
        return np.ascontiguousarray(pixels[::-1, :, :3])

    def _flattening(self) -> Array:
        n, s = self.stage.up, self.sun
        h = self.stage.ground - 1.4e-3 * self.stage.size
        P = np.eye(4)
        P[:3, :3] -= np.outer(s, n) / (n @ s)
        P[:3, 3] = s * h / (n @ s)
        return P

    def _matrix(self, T: Array) -> Any:
        matrix = self.vtk.math.vtkMatrix4x4()
        matrix.DeepCopy(np.asarray(T, dtype=float).ravel().tolist())
        return matrix

    def close(self) -> None:
        self.window.Finalize()


def _unit(x: Array) -> Array:
    return np.asarray(x) / np.linalg.norm(x)


__all__ = ["THEMES", "Raster"]
