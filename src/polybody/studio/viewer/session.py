"""What happens between the page and the model: commands change the configuration or the simulation, states go back.

One thread, the director, owns the model's state. It takes commands in their order (of those that follow each other
quickly only the last of a kind), advances a live simulation, and publishes at most FRAMES states per second. A
command that fails is reported on the page in words; nothing that a visitor does ends the thread.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError, warn
from polybody.model.named_configurations import configurations
from polybody.studio.channels import holding
from polybody.studio.stage.stage import Stage
from polybody.studio.viewer.analyses import internal_loads, mobility_motions
from polybody.studio.viewer.content import state_content
from polybody.studio.viewer.hub import Hub, Visitor
from polybody.studio.viewer.pack import packed
from polybody.studio.viewer.posing import Posing

if TYPE_CHECKING:
    from polybody.studio.viewer.live import Live

Array = np.ndarray
FRAMES = 60
CONTINUOUS = frozenset({"set", "drag", "pull", "option"})


class Session:
    """One model on the page; `live` where it is simulated there."""

    def __init__(self, stage: Stage, posing: Posing, live: Live | None = None) -> None:
        self.stage, self.posing, self.live, self.model = stage, posing, live, stage.model
        named = {name: np.array(q) for name, q in configurations(self.model).items()}
        self.configurations: dict[str, Array] = {"first": posing.start.copy(), **named}
        self.commands: queue.Queue[tuple[Visitor | None, dict[str, Any]]] = queue.Queue()
        self.refused: dict[str, Any] | None = None
        self.told: str | None = None
        self._preparing = False
        self.hub: Hub | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._direct, name="polybody director", daemon=True)

    def start(self, hub: Hub) -> None:
        self.hub = hub
        self._thread.start()

    def arrived(self, visitor: Visitor) -> None:
        self.commands.put((visitor, {"do": "arrived", "n": 0}))

    def received(self, visitor: Visitor, command: dict[str, Any]) -> None:
        self.commands.put((visitor, command))

    def close(self) -> None:
        self._ended.set()
        self.commands.put((None, {"do": "end", "n": 0}))
        if self._thread.is_alive():
            self._thread.join(timeout=20)

    # The director.

    def _direct(self) -> None:
        before = time.monotonic()
        while not self._ended.is_set():
            running = self.live is not None and self.live.running
            batch = self._waiting(1 / FRAMES if running else None)
            for visitor, command in batch:
                self._do(visitor, command)
            if self._ended.is_set():  # nobody looks any more
                return
            now = time.monotonic()
            if running and self.live is not None and self.live.running:
                self._guarded(lambda passed=now - before: self.live.advance(passed))  # type: ignore[union-attr]
                self._prepared()
            before = now
            if batch or running:
                self._guarded(self.publish)
            for visitor, command in batch:
                if visitor is not None and command["n"]:
                    self._hub.tell({"k": "ack", "n": command["n"]}, visitor)

    def _waiting(self, pause: float | None) -> list[tuple[Visitor | None, dict[str, Any]]]:
        """Commands that have come, after at most the pause (until one comes, where there is none)."""
        try:
            found = [self.commands.get(timeout=pause)]
        except queue.Empty:
            return []
        while not self.commands.empty():
            found.append(self.commands.get_nowait())
        last = {_sort(c): k for k, (_, c) in enumerate(found)}
        return [(v, c) for k, (v, c) in enumerate(found) if c["do"] not in CONTINUOUS or last[_sort(c)] == k]

    @property
    def _hub(self) -> Hub:
        assert self.hub is not None
        return self.hub

    def _guarded(self, act: Any) -> bool:
        """Do something; what fails is said on the page, and a live simulation pauses."""
        try:
            act()
            return True
        except Exception as error:  # whatever fails must be said on the page and must not end the thread
            kind = "" if isinstance(error, PolybodyError) else f"{type(error).__name__}: "
            if self.live is not None and self.live.running:
                self.live.running = False
                self._settings()
            self._say(f"{kind}{error}")
            if kind:
                warn(f"the page: {kind}{error}")
            return False

    def _say(self, text: str, level: str = "error", stays: bool = False) -> None:
        self._hub.tell({"k": "notice", "level": level, "text": text, "stays": stays})

    def _prepared(self) -> None:
        """The step is compiled: what said so goes."""
        if self._preparing:
            self._preparing = False
            self._say("", "info")

    def _do(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        act = getattr(self, f"_do_{command['do']}")
        self._guarded(lambda: act(visitor, command))

    # Commands.

    def _do_end(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        pass

    def _do_arrived(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        self._hub.tell({"k": "configurations", "names": list(self.configurations)}, visitor)
        self._settings()

    def _do_set(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        self._pose()
        wanted = self.posing.set(command["key"], float(command["value"]))
        self.refused = None if wanted is None else {"key": command["key"], "value": wanted}
        if wanted is not None:
            here = float(self.posing.values(self.posing.q)[self._index(command["key"])])
            self._say(
                f"{command['key']} = {wanted:.4g} cannot be reached: the loops close only up to {here:.4g} from here"
            )
        self._posed()

    def _index(self, key: str) -> int:
        return next(k for k, c in enumerate(self.posing.coordinates) if c.key == key)

    def _do_drag(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        target = np.array(command["target"], dtype=float)
        if self.live is not None and self.live.controlled:
            self.live.drag_goal(command["frame"], target, command["turn"])
            return
        self._pose()
        self.posing.drag(command["frame"], target, command["turn"])
        self.refused = None
        self._posed()

    def _do_pull(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if self.live is not None:
            self.live.pull(command["body"], np.array(command["local"], float), np.array(command["target"], float))

    def _do_release(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if self.live is not None:
            self.live.release()

    def _do_configuration(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if command["name"] not in self.configurations:
            raise InputError(f"no configuration named {command['name']!r}")
        self._pose()
        self.posing.move_to(self.configurations[command["name"]])
        self.refused = None
        self._posed()

    def _do_save(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        name = command["name"].strip()
        if not name:
            raise InputError("a configuration needs a name")
        self.configurations[name] = self._state()[0].copy()
        self._hub.tell({"k": "configurations", "names": list(self.configurations)})
        self._say(f"saved as {name!r}", "info")

    def _do_reset(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        self.refused = None
        if self.live is not None:
            self.live.reset()
            self._settings()
        self.posing.move_to(self.posing.start)

    def _do_random(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        self._pose()
        q = self.model.random_configuration(None)
        joint = self.model.mechanism.joints[0] if self.model.mechanism.joints else None
        if joint is not None and joint.kind == "floating" and not self.model.mechanism.constrained:
            q[joint.q] = self.posing.q[joint.q]  # the limbs, not the place of the base
        self.posing.move_to(q)
        self.refused = None
        self._posed()

    def _do_step(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if self.live is not None:
            self.live.running = False
            self.live.step()
            self._settings()

    def _do_goal(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if self.live is not None:
            self.live.goal_here()

    def _do_layers(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if visitor is not None:
            visitor.layers = set(command["keys"])

    def _do_option(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        if self.live is None:
            raise InputError("this page shows no live simulation: polybody view MODEL --live")
        if self.live.prepares(command["key"], command["value"]):
            self._preparing = True
            self._say("preparing the compiled step …", "info", stays=True)
        self.live.set(command["key"], command["value"])
        self._settings()
        if not self.live.running:
            self._prepared()

    def _do_analysis(self, visitor: Visitor | None, command: dict[str, Any]) -> None:
        q = self._state()[0]
        found = internal_loads(self.stage, q) if command["name"] == "internal" else mobility_motions(self.stage, q)
        self._hub.give(packed({"k": "analyses", **found}), visitor)

    # States.

    def _pose(self) -> None:
        """A person takes the mechanism in hand: what is simulated pauses there."""
        if self.live is not None:
            self.posing.q = self.live.q.copy()

    def _posed(self) -> None:
        if self.live is not None:
            self.live.place(self.posing.q)

    def _settings(self) -> None:
        if self.live is not None:
            self._hub.tell({"k": "settings", "live": self.live.settings()})

    def _state(self) -> tuple[Array, Array, Array, Array | None, float]:
        if self.live is not None:
            return self.live.q, self.live.v, self.live.a, self.live.tau, self.live.t
        zero = np.zeros(self.model.nv)
        return self.posing.q, zero, zero, holding(self.model, self.posing.q), 0.0

    def frame(self) -> bytes:
        """The state as it goes to the pages."""
        q, v, a, tau, t = self._state()
        wanted = set().union(*(visitor.layers for visitor in list(self._hub.visitors))) if self.hub else set()
        if wanted and tau is None and self.live is None:
            wanted -= {"joint torques", "joint forces"}
        state, problem = state_content(self.stage, self.posing, q, v, a, tau, t, wanted)
        if problem != self.told:
            self.told = problem
            if problem:
                self._say(problem)
        live = {} if self.live is None else {"live": self.live.told(self.stage)}
        return packed({"k": "frame", **state, **live, "refused": self.refused})

    def publish(self) -> None:
        self._hub.publish(self.frame())


def _sort(command: dict[str, Any]) -> tuple[str, Any]:
    return command["do"], command.get("key")


__all__ = ["FRAMES", "Session"]
