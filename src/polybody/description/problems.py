"""A problem of a description, and how many of them become one error or several warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from polybody.errors import InputError, PolybodyWarning

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Problem:
    """Something wrong ("error") or unusual ("warning"), and where it was said ("robot.yaml:12")."""

    severity: str
    message: str
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.source}: {self.message}" if self.source else self.message


def errors_of(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == ERROR]


def raise_errors(problems: Iterable[Problem], subject: str) -> None:
    """Raise one `InputError` that lists every error; do nothing where there is none."""
    errors = errors_of(problems)
    if len(errors) == 1:
        raise InputError(str(errors[0]))
    if errors:
        raise InputError(f"{subject} has {len(errors)} problems:\n" + "\n".join(f"  {error}" for error in errors))


def warn_warnings(problems: Iterable[Problem], stacklevel: int = 2) -> None:
    """Issue each warning as a `PolybodyWarning`."""
    for problem in problems:
        if problem.severity == WARNING:
            warnings.warn(str(problem), PolybodyWarning, stacklevel=stacklevel + 1)


__all__ = ["ERROR", "WARNING", "Problem", "errors_of", "raise_errors", "warn_warnings"]
