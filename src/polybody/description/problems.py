"""A problem of a description, and how many of them become one error or several warnings.

A person wants to see every problem of a file at once, but nobody reads a thousand of them, and a hostile file can have
millions: after `limits.PROBLEMS` errors reading stops.
"""

from __future__ import annotations

from collections.abc import Iterable

from polybody.description.limits import PROBLEMS
from polybody.errors import InputError, warn
from polybody.late import dataclass
from polybody.names import counted

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Problem:
    """Something wrong ("error") or unusual ("warning"), and where it was said ("robot.yaml:12")."""

    severity: str
    message: str
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.source}: {self.message}" if self.source else self.message


class TooManyProblems(InputError):
    """Raised where reading stops because of the number of problems; `problems` are those found until then."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = [*problems, Problem(ERROR, f"reading stopped at {PROBLEMS} problems", problems[-1].source)]
        super().__init__(_listed(self.problems))


class ProblemList:
    """Collects the errors met in reading one file, up to `limits.PROBLEMS`."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def error(self, message: str, source: str | None) -> None:
        self.found.append(Problem(ERROR, message, source))
        if len(self.found) >= PROBLEMS:
            raise TooManyProblems(self.found)


def first_problems(problems: Iterable[Problem]) -> list[Problem]:
    """The first `limits.PROBLEMS` errors, and as many warnings; what is left out is counted, for warnings.

    Problems are taken one by one, so that none is looked for beyond the last error that is reported.
    """
    kept: list[Problem] = []
    errors = warned = 0
    for problem in problems:
        errors += problem.severity == ERROR
        warned += problem.severity == WARNING
        if problem.severity == ERROR or warned <= PROBLEMS:
            kept.append(problem)
        if errors >= PROBLEMS:
            return [*kept, Problem(ERROR, f"checking stopped at {PROBLEMS} errors", problem.source)]
    if warned > PROBLEMS:
        kept.append(Problem(WARNING, f"and {warned - PROBLEMS} more warnings like these"))
    return kept


def errors_of(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == ERROR]


def raise_errors(problems: Iterable[Problem], subject: str) -> None:
    """Raise one `InputError` that lists every error; do nothing where there is none."""
    errors = errors_of(problems)
    if len(errors) == 1:
        raise InputError(str(errors[0]))
    if errors:
        raise InputError(f"{subject} has {counted(len(errors), 'problem')}:\n{_listed(errors)}")


def _listed(problems: Iterable[Problem]) -> str:
    return "\n".join(f"  {problem}" for problem in problems)


def warn_warnings(problems: Iterable[Problem]) -> None:
    """Issue each warning as a `PolybodyWarning` at the caller's line."""
    for problem in problems:
        if problem.severity == WARNING:
            warn(str(problem))


__all__ = [
    "ERROR",
    "WARNING",
    "Problem",
    "ProblemList",
    "TooManyProblems",
    "errors_of",
    "first_problems",
    "raise_errors",
    "warn_warnings",
]
