"""The controls of the page: sliders for joints, what to show, and for a run play, scrub, speed and plots."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from polybody.studio.record import Record, v_labels
from polybody.studio.viewer.scene import Scene

Array = np.ndarray
FRAMES_A_SECOND = 30
PLOT_POINTS = 300
PALETTE = ("#2563eb", "#dc2626", "#16a34a", "#d97706", "#7c3aed", "#0891b2", "#db2777", "#65a30d", "#475569", "#ea580c")


class Panel:
    """Everything a person can touch. `q` is what is shown now."""

    def __init__(self, server: Any, scene: Scene, record: Record | None) -> None:
        self.server, self.scene, self.record, self.model = server, scene, record, scene.model
        self.q = self.model.neutral() if record is None else record.q[0].copy()
        self.lock = threading.RLock()
        self.moving = False  # sliders are being set by the player, not by a person
        if record is not None:
            self._add_player(record)
        self._add_switches()
        self._add_sliders()
        if record is not None:
            self._add_plots(record)
        self.refresh()

    def refresh(self) -> None:
        with self.lock:
            if self.record is None:
                zero = np.zeros(self.model.nv)
                hold = self.model.inverse_dynamics(self.q, zero, zero) if self._arrows() else None
                self.scene.show(self.q, zero, zero, hold)
            else:
                k = self.index
                r = self.record
                self.scene.show(self.q, r.v[k], r.accelerations[k], r.tau[k])

    def _arrows(self) -> bool:
        return self.scene.torques.visible or self.scene.reactions.visible

    def _add_switches(self) -> None:
        scene = self.scene
        with self.server.gui.add_folder("Show"):
            for label, handles in (
                ("frames", scene.frames),
                ("centre of mass", [scene.com]),
                ("inertia ellipsoids", scene.ellipsoids),
                ("joint torques", [scene.torques]),
                ("joint reactions", [scene.reactions]),
            ):
                self._switch(label, handles)

    def _switch(self, label: str, handles: list[Any]) -> None:
        box = self.server.gui.add_checkbox(label, False)

        @box.on_update
        def _(_: Any) -> None:
            for handle in handles:
                handle.visible = box.value
            self.refresh()

    def _add_sliders(self) -> None:
        """One slider for each number of joints whose q and v correspond; the others keep their place."""
        self.sliders: list[tuple[int, Any]] = []
        with self.server.gui.add_folder("Joints"):
            for joint in self.model.mechanism.independent_joints:
                if joint.nq != joint.nv:
                    continue
                for k in range(joint.nq):
                    self._slider(joint, k)

    def _slider(self, joint: Any, k: int) -> None:
        index = joint.q.start + k
        low, high = float(joint.limits.lower[k]), float(joint.limits.upper[k])
        turning = bool(np.any(joint.model.velocity_map(joint.model.neutral())[:3, k]))
        wide = np.pi if turning else self.scene.size
        low, high = (low if np.isfinite(low) else -wide), (high if np.isfinite(high) else wide)
        if self.record is not None:
            low, high = min(low, float(self.record.q[:, index].min())), max(high, float(self.record.q[:, index].max()))
        value = float(np.clip(self.q[index], low, high))
        label = joint.name if joint.nq == 1 else f"{joint.name} {k}"
        slider = self.server.gui.add_slider(label, low, high, (high - low) / 1000 or 1e-3, value)
        self.sliders.append((index, slider))

        @slider.on_update
        def _(event: Any) -> None:
            if event.client is None or self.moving:
                return
            with self.lock:
                self.q[index] = slider.value
            self.refresh()

    def _add_player(self, record: Record) -> None:
        self.index, self.playing = 0, False
        self.time = float(record.t[0])
        gui = self.server.gui
        with gui.add_folder("Run"):
            self.play_button = gui.add_button("Play")
            self.scrub = gui.add_slider("time", float(record.t[0]), float(record.t[-1]),
                                        max((record.t[-1] - record.t[0]) / 1000, 1e-6), float(record.t[0]))  # fmt: skip
            self.speed = gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0)

        @self.play_button.on_click
        def _(_: Any) -> None:
            self.playing = not self.playing
            if self.playing and self.time >= record.t[-1]:
                self.time = float(record.t[0])
            self.play_button.label = "Pause" if self.playing else "Play"

        @self.scrub.on_update
        def _(event: Any) -> None:
            if event.client is not None and not self.moving:
                self.go(float(self.scrub.value), by_hand=True)

    def _add_plots(self, record: Record) -> None:
        """Torques and energies with a marker at the time shown."""
        from viser import uplot

        keep = np.unique(np.linspace(0, len(record.t) - 1, PLOT_POINTS).astype(int))
        kinetic, potential = record.energies
        total = kinetic + potential
        names = v_labels(self.model)[: len(PALETTE)]
        pictures = {
            "Torques": [(n, record.tau[keep, k]) for k, n in enumerate(names)],
            "Energy": [("kinetic", kinetic[keep]), ("potential", potential[keep]), ("total", total[keep])],
            "Speeds": [(n, record.v[keep, k]) for k, n in enumerate(names)],
        }
        self.plot_times = record.t[keep]
        self.plots: list[tuple[Any, list[Array]]] = []
        for title, curves in pictures.items():
            with self.server.gui.add_folder(title, expand_by_default=title != "Speeds"):
                series = (
                    uplot.Series(label="t"),
                    *(uplot.Series(label=n, stroke=PALETTE[k], width=1.5) for k, (n, _) in enumerate(curves)),
                    uplot.Series(label="now", stroke="#0f172a", width=1.5),
                )
                lines = [np.ascontiguousarray(c) for _, c in curves]
                handle = self.server.gui.add_uplot(
                    (self.plot_times, *lines, self._marker(lines)), series, aspect=1.6,
                    scales={"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)},
                )  # fmt: skip
                self.plots.append((handle, lines))
        self.drawn = 0.0

    def _marker(self, lines: list[Array]) -> Array:
        """A vertical stroke at the time shown: two neighbouring points at the ends of the range."""
        low, high = min(float(x.min()) for x in lines), max(float(x.max()) for x in lines)
        mark = np.full(len(self.plot_times), np.nan)
        k = int(np.clip(np.searchsorted(self.plot_times, self.time), 0, len(mark) - 2))
        mark[k], mark[k + 1] = low, high
        return mark

    def go(self, t: float, by_hand: bool = False) -> None:
        """Show the run at a time, between samples along the manifold."""
        record = self.record
        assert record is not None
        with self.lock:
            self.time = float(np.clip(t, record.t[0], record.t[-1]))
            k = int(np.clip(np.searchsorted(record.t, self.time, side="right") - 1, 0, len(record.t) - 1))
            self.index = k
            self.q = record.q[k].copy()
            if k + 1 < len(record.t):
                part = (self.time - record.t[k]) / (record.t[k + 1] - record.t[k])
                step = self.model.difference(record.q[k], record.q[k + 1])
                self.q = self.model.integrate(record.q[k], part * step)
            self.moving = True
            try:
                if not by_hand:
                    self.scrub.value = self.time
                for index, slider in self.sliders:
                    slider.value = float(np.clip(self.q[index], slider.min, slider.max))
            finally:
                self.moving = False
            self.refresh()
            if time.monotonic() - self.drawn > 0.25:
                self.drawn = time.monotonic()
                for handle, lines in self.plots:
                    handle.data = (self.plot_times, *lines, self._marker(lines))

    def tick(self, passed: float) -> None:
        """Advance a playing run by the seconds that passed."""
        if self.record is None or not self.playing:
            return
        self.go(self.time + passed * float(self.speed.value))
        if self.time >= self.record.t[-1]:
            self.playing = False
            self.play_button.label = "Play"


__all__ = ["FRAMES_A_SECOND", "Panel"]
