"""What an identification found, and how good it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import warn
from polybody.identification.joint_terms import MORE
from polybody.identification.problem import Problem
from polybody.identification.recording import recording
from polybody.identification.signals import States, states_of
from polybody.identification.updating import updated_model
from polybody.late import dataclass, field
from polybody.model.model import Model
from polybody.names import counted
from polybody.outlets import outlet

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Prediction:
    """A recording and its predicted forces on independent coordinates, with the same filter."""

    t: Array  # s
    measured: Array  # (N, m), filtered
    predicted: Array
    raw: Array  # as measured
    source: str  # file or name of the recording

    @property
    def error(self) -> float:
        """‖τ − τ̂‖/‖τ‖ of filtered forces."""
        return float(np.linalg.norm(self.measured - self.predicted) / np.linalg.norm(self.measured))

    @property
    def raw_error(self) -> float:
        """‖τ − τ̂‖/‖τ‖ of the measured, unfiltered forces."""
        return float(np.linalg.norm(self.raw - self.predicted) / np.linalg.norm(self.raw))

    @property
    def errors(self) -> Array:
        """‖τ − τ̂‖/‖τ‖ of each coordinate."""
        return np.linalg.norm(self.measured - self.predicted, axis=0) / np.linalg.norm(self.measured, axis=0)


@dataclass(frozen=True, eq=False)
class Identification:
    """Estimates with standard deviations, prediction errors, and the identified model.

    `base` and `deviations` are the base parameters and their standard deviations by least squares; `parameters` all
    parameters by name: physically consistent ones where `consistent`, else the least-squares ones with what is not
    identifiable as in the model.
    """

    problem: Problem  # the stacked equations
    base: Array
    deviations: Array
    estimate: Array  # x that predictions use
    parameters: dict[str, float]
    consistent: bool
    condition: float  # number of the stacked base regressor
    training: tuple[Prediction, ...]  # predictions of the recordings that were fitted
    validation: tuple[Prediction, ...]  # and of those that were not
    choices: dict[str, Any] = field(default_factory=dict)  # options in effect: filter, terms, method
    original: Model | None = None  # the model before identification

    @property
    def formulas(self) -> tuple[str, ...]:
        """Formula of each entry of `base` in terms of the parameters."""
        return self.problem.labels

    @property
    def training_error(self) -> float:
        """‖τ − τ̂‖/‖τ‖ over all training data."""
        return _error(self.training)

    @property
    def validation_error(self) -> float | None:
        """‖τ − τ̂‖/‖τ‖ over all validation data."""
        return _error(self.validation) if self.validation else None

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Parameters without any effect on the joint forces."""
        return self.problem.base.invisible

    @property
    def model(self) -> Model:
        """The model with the estimated bodies, armature and friction."""
        assert self.original is not None
        return updated_model(
            self.original, self.parameters, (self.problem.speeds.regularisation, self.problem.speeds.stribeck)
        )

    @property
    def beside_model(self) -> dict[str, float]:
        """Coefficients that a joint's description cannot express: offset, quadratic, load."""
        words = ("offset", *(x for x in MORE if x != "stribeck"))
        return {k: v for k, v in self.parameters.items() if k.rpartition(".")[2] in words}

    def predict(self, data: Any, *, drive_gains: Any = None, units: Any = None) -> Prediction:
        """Predict the forces of another recording; `drive_gains` and `units` as in `pb.identify`."""
        assert self.original is not None
        states = states_of(
            self.problem.model, recording(self.original, data, drive_gains=drive_gains, units=units),
            self.choices["cutoff_hz"], self.choices["rate_hz"],
        )  # fmt: skip
        return predict(self.problem, self.estimate, states)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the model to a .yaml (mechanism file), .urdf or .xml (MJCF) file.

        What URDF and MJCF have no words for (armature in URDF, the Stribeck curve) is left out with a warning; so is,
        in every format, what no description of a joint can say (`beside_model`).
        """
        unsaid = [name for name, value in self.beside_model.items() if value]
        if unsaid:
            warn(f"{path}: left out, a joint's description cannot express them: {', '.join(unsaid)}")
        return self.model.save(path, force=force, lossy=True)

    def plot(self, prediction: Prediction | None = None) -> Any:
        """A figure of measured and predicted forces: of the validation data, the training data, or a `predict`."""
        return outlet("identification", "plot")(self, prediction or (*self.validation, *self.training)[0])

    def report(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write an HTML page with errors, curves, estimates and choices."""
        return outlet("identification", "report")(self, path, force=force)

    def summary(self) -> dict[str, Any]:
        """Results as plain data, for JSON."""
        found = {
            "model": self.problem.model.name,
            "training_error": self.training_error,
            "validation_error": self.validation_error,
            "training_error_unfiltered": _error(self.training, raw=True),
            "validation_error_unfiltered": _error(self.validation, raw=True) if self.validation else None,
            "base_parameters": self.base_count,
            "estimated": len(self.base),
            "consistent": self.consistent,
            "condition": self.condition,
            "terms": list(self.problem.terms),
            "joint_errors": {p.source: p.errors.tolist() for p in (*self.training, *self.validation)},
            "estimates": [
                {"formula": f, "value": float(x), "deviation": float(s)}
                for f, x, s in zip(self.formulas, self.base, self.deviations, strict=True)
            ],
            "parameters": self.parameters,
            "without_effect": list(self.unidentifiable),
            "only_combined": list(self.problem.base.combined),
            "choices": self.choices,
        }
        return found

    @property
    def base_count(self) -> int:
        """Number of base parameters of the bodies; the remaining ones of `base` belong to the joints."""
        return int(np.sum(self.problem.base.pivots < 10 * len(self.problem.model.mechanism.bodies)))

    def __str__(self) -> str:
        valid = "" if self.validation_error is None else f", validation {100 * self.validation_error:.2f} %"
        joints = len(self.base) - self.base_count
        lines = [
            f"{self.problem.model.name}: {counted(self.base_count, 'base parameter')} of the bodies, "
            f"{joints} of the joints, "
            f"condition {self.condition:.0f}",
            f"relative torque error: training {100 * self.training_error:.2f} %{valid}",
            f"physically consistent: {'yes' if self.consistent else 'no'}; joints have {', '.join(self.problem.terms)}",
        ]
        width = max((len(f) for f in self.formulas), default=0)
        for f, x, s in zip(self.formulas, self.base, self.deviations, strict=True):
            lines.append(f"  {x:12.5g} ± {s:<9.2g} {f[: min(width, 90)]}{' …' if len(f) > 90 else ''}")
        return "\n".join(lines)


def predict(problem: Problem, x: Array, states: States) -> Prediction:
    """The estimate's forces along states, filtered as the measured ones were."""
    rows = problem.rows(states)
    forces = problem.columns(rows, problem.load(rows, x)) @ x
    inner = states.inner
    return Prediction(states.t[inner], rows.b[inner], states.filtered(forces)[inner], rows.raw[inner], states.source)


def _error(parts: tuple[Prediction, ...], raw: bool = False) -> float:
    measured = np.concatenate([(p.raw if raw else p.measured).ravel() for p in parts])
    predicted = np.concatenate([p.predicted.ravel() for p in parts])
    return float(np.linalg.norm(measured - predicted) / np.linalg.norm(measured))


__all__ = ["Identification", "Prediction", "predict"]
