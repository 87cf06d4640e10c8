"""`Study`: a model, what varies, what is done with each case, what is kept; and `run`, on one core or on a cluster.

    study = pb.Study(model, vary={"payload.mass": {"uniform": [0, 3]}}, samples=10_000, quantity="inverse_dynamics",
                     keep=["tau", "peak(tau)"])
    results = study.run("payloads")              # a folder; the same call resumes what was interrupted
    results.pandas()
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polybody.description.records import as_data
from polybody.errors import InputError, PolybodyError
from polybody.kernels import background, threads
from polybody.model.arguments import float_array, positive, require_model
from polybody.model.model import Model
from polybody.names import counted, nearest
from polybody.properties import cached_property
from polybody.quantities.table import quantity as quantity_named
from polybody.studies import targets
from polybody.studies.axes import cases_of, whole
from polybody.studies.dataset import FORMAT, FORMATS, Folder, Memory, arrow, read_table
from polybody.studies.executors import connect, content_of, executor_of, on_ray, processes
from polybody.studies.reductions import check_keep
from polybody.studies.results import StudyResults
from polybody.studies.tasks import CHUNKS, KINDS, Case, Job, Task, varied_names

Array = np.ndarray
Progress = Callable[[int, int, int], None]
BLOCK, LARGEST_CHUNK, CHUNK_BYTES = 256, 1 << 17, 12 << 20  # multiple and most cases, bytes of a chunk by default
INTERPRETED = 1.0  # seconds that the rest of a study may take before compiled code is waited for
OPTIONS = {
    "quantity": None, "rollout": ("steps", "dt", "method", "q0", "v0", "tau", "controller"),
    "simulate": ("duration", "q0", "v0", "controller", "method", "dt", "rtol", "atol", "sample", "limits", "max_steps"),
    "linearize": ("q", "v", "tau", "inputs", "outputs", "independent"), "function": (),
}  # fmt: skip


class Study:
    """A parameter study: a model, the parameters to vary, the computation, and the results to keep.

    Instead of a model there may be a template, a function {name: value} -> Model of the varied names that are neither
    states nor gains, for machines that differ in structure; each case then builds its own. The model may be None for a
    `function` that needs none.

    `vary` maps names to axes: numbers or vectors in a list, {"grid": [first, last, n]}, or a distribution ({"uniform":
    [low, high]}, {"normal": [mean, deviation]}, …; numbers may be lists, one per component), or {"covariance": …,
    "mean": …, "names": […]}. Names are parameters of the model, as in `with_parameters`; states ("q", "v", "q0.joint2",
    "tau.1"); wrenches ("wrench.FRAME", "wrench.FRAME.fz"); gains ("kp", "kd", "target"); or, for a function, any name.
    Instead of PD gains, `controller` may be a function of the model and of named numbers ("controller.stiffness") that
    returns a controller, or a list of such functions, indexed by the axis "controller". `samples` cases are drawn
    from the distributions by `design` ("random", "latin-hypercube", "sobol", "saltelli"), for each point of lists and
    grids.

    Exactly one computation is given: `quantity` (a name, with its arguments in `at`), `rollout`, `simulate` or
    `linearize` (their options), or `function`(case) -> {name: numbers}, with case.model, case[name], case.rng. `keep`
    names results ("tau"), entries of them ("tau[1]") or reductions ("peak(tau)"); default: all.
    """

    @background.repeatable()  # of the states that all cases share
    def __init__(
        self,
        model: Model | Callable[[dict[str, Any]], Model] | None,
        vary: Mapping[str, Any],
        *,
        quantity: str | None = None,
        at: Mapping[str, Any] | None = None,
        rollout: Mapping[str, Any] | None = None,
        simulate: Mapping[str, Any] | None = None,
        linearize: Mapping[str, Any] | None = None,
        function: Callable[[Case], Mapping[str, Any]] | None = None,
        keep: str | Sequence[str] = (),
        samples: int | None = None,
        design: str = "random",
        seed: int = 0,
        chunk: int | None = None,
        name: str = "study",
    ) -> None:
        template = None if model is None or isinstance(model, Model) or not callable(model) else model
        if template is None and model is not None:
            require_model("Study", model)
        given = {"quantity": quantity, "rollout": rollout, "simulate": simulate, "linearize": linearize,
                 "function": function}  # fmt: skip
        kinds = [kind for kind in KINDS if given[kind] is not None]
        if len(kinds) != 1:
            got = ", ".join(kinds) or "none"
            raise InputError(f"a study does one thing: give one of {', '.join(KINDS)}; got {got}")
        kind = kinds[0]
        if model is None and kind != "function":
            raise InputError(f"{kind} needs a model")
        whole("seed", seed, 0)
        if chunk is not None:
            whole("chunk", chunk, 1)
        if function is not None and not callable(function):
            raise InputError(f"function is {function!r:.60}; expected a function of one case")
        self.name, self.vary = name, dict(vary) if isinstance(vary, Mapping) else vary
        self.cases = cases_of(self.vary, samples, design, int(seed), int(chunk or CHUNKS[kind]))
        names = varied_names(self.cases)
        self.template = template
        if template is not None:
            self.model: Model | None = self._first_of(template)
        else:
            assert model is None or isinstance(model, Model)
            self.model = _varied(model, names, kind)
        keep = (keep,) if isinstance(keep, str) else tuple(keep or ())
        check_keep(keep)
        task = Task(kind, _options(self.model, kind, given, at), keep, function)
        self.task = replace(task, where=targets.placed(self.model, task, names, template is not None))
        self.job = Job(self.model, self.cases, self.task, template)
        self._check_sizes()
        self._check_nominal()
        if chunk is None and kind == "quantity" and template is None:
            self.cases = replace(self.cases, chunk=self._lanes_of_a_chunk())
            self.job = replace(self.job, cases=self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def __repr__(self) -> str:
        return (
            f"<Study {self.name!r}: {counted(len(self), 'case')} of {self.task.kind}, "
            f"{counted(self.cases.chunks, 'chunk')}>"
        )

    @cached_property
    def digest(self) -> str:
        """Hash of the model, the code and all options of the study."""
        return hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode()).hexdigest()

    def run(
        self, folder: str | os.PathLike[str] | None = None, *, workers: int | None = None, cluster: str | None = None,
        resume: bool = True, progress: Progress | None = None, format: str = "arrow",
    ) -> StudyResults:
        """Compute the missing cases of a results folder, and return its results; without a folder, keep them in memory.

        `workers` is the number of processes on this machine (default: one for batched kernels, which use the threads
        that `pb.threads` allows; all cores for case-by-case computations). `cluster` is "auto" or the address of a Ray
        cluster. Results are bit-identical however they are distributed, on equal processors. Finished chunks are never
        computed again; with resume=False a folder that has some raises an error. `progress(finished cases, all cases,
        failed)` is called after every chunk. `format` of the files is "arrow" (as fast as the file system) or
        "parquet".
        """
        arrow()
        if format not in FORMATS:
            raise InputError(f"format is {format!r}{nearest(str(format), FORMATS)}; expected {' or '.join(FORMATS)}")
        executor, last = self._executor(workers, cluster)
        kept = Memory() if folder is None else Folder(folder, format)
        with background.repeatable():
            begun = time.perf_counter()
            self._check_first()
            took = time.perf_counter() - begun
            if cluster is not None:
                connect(cluster)
            facts = self.facts()
            digest = facts["digest"]
            kept.begin(facts)
            missing, finished, failed = [], 0, 0
            for k in range(self.cases.chunks):
                first, end = self.cases.span(k)
                if kept.done(digest, k, end - first):
                    finished += end - first
                else:
                    missing.append(k)
            if finished and not resume:
                raise InputError(f"{folder}: has {finished} finished cases; resume the study, or choose another folder")
            workers_wait = executor in (processes, on_ray)  # for code that they would make each for itself
            compiled = bool(missing) and (workers_wait or self._is_long(len(self) - finished, took))
            if compiled:
                background.wait()
            made = executor(self.job, missing, last, kept.form)
            before, begun = finished, time.perf_counter()
            try:
                for index, content, errors in made:
                    kept.write(digest, index, content)
                    first, end = self.cases.span(index)
                    finished, failed = finished + end - first, failed + errors
                    if progress is not None:
                        progress(finished, len(self), failed)
                    left = (time.perf_counter() - begun) * (len(self) - finished) / (finished - before)
                    if left > INTERPRETED and not compiled:
                        background.wait()
                        compiled = True
            finally:
                made.close()  # type: ignore[attr-defined]
        return StudyResults(kept)

    def dry_run(self, seconds: float = 1.0, *, workers: int | None = None) -> dict[str, Any]:
        """Describe a run without executing it: cases, batches, and estimates of time and size from a timed sample.

        Samples grow to a whole chunk, or until they take a part of `seconds`; the estimate is for as many threads or
        processes as `run` would use. One process is started to know how long that takes.
        """
        executor, count = self._executor(workers, None)
        with background.repeatable(compiled=True), threads(1):
            self._check_first()
            background.wait()  # kernels that were made before may be interpreted
            rate, size = self._timed(seconds)
            start = self._start() if executor is processes else 0.0
        used = max(min(count, self.cases.chunks), 1)
        by = counted(used, "process", "processes") if executor is processes else counted(used, "thread")
        batched = "lanes of one kernel" if self.task.in_lanes and self.template is None else "case by case"
        return {
            "name": self.name, "cases": len(self), "chunks": self.cases.chunks, "chunk": self.cases.chunk,
            "kind": self.task.kind, "design": self.cases.design, "varied": varied_names(self.cases),
            "batched": batched, "by": by,
            "cases_per_second": rate * used, "start": start, "seconds": start + len(self) / (rate * used),
            "bytes": round(size),
        }  # fmt: skip

    def _timed(self, seconds: float) -> tuple[float, float]:
        """(cases per second of one thread, bytes of all files) by the largest sample there is time for."""
        most = min(self.cases.chunk, len(self))
        self._sample(1)  # what only the first case takes
        size, (rate, content) = 1, self._sample(1)
        while size < most and 4 * size / rate < seconds / 4:
            size = min(4 * size, most)
            rate, content = self._sample(size)
        numbers = read_table(content, "arrow").nbytes  # the rest of a file does not grow with its cases
        return rate, numbers / size * len(self) + (len(content) - numbers) * self.cases.chunks

    def _start(self) -> float:
        """Seconds until a process that was started has its first case: imports, and the machine code of the job."""
        job = Job(self.model, replace(self.cases, chunk=1), self.task, self.template)
        started = time.perf_counter()
        next(processes(job, [0], 1, "arrow"))
        return time.perf_counter() - started

    def _sample(self, size: int) -> tuple[float, bytes]:
        """(cases per second, the file) of so many cases."""
        job = Job(self.model, replace(self.cases, chunk=size), self.task, self.template)
        started = time.perf_counter()
        content = content_of(job, 0, "arrow")[1]
        return size / (time.perf_counter() - started), content

    def facts(self) -> dict[str, Any]:
        """Metadata that is written beside the results."""
        from polybody.kernels.target import host

        target = host()
        return {
            "format": FORMAT, "name": self.name, "digest": self.digest, "cases": len(self),
            "chunk": self.cases.chunk, "study": self._identity, "varied": varied_names(self.cases),
            "model": None if self.model is None else self.model.name,
            "machine": {"cpu": target.cpu, "features": target.features, "lanes": target.lanes},
        }  # fmt: skip

    # Inside.

    @cached_property
    def _identity(self) -> dict[str, Any]:
        from polybody.sources import source_digest

        model = None if self.model is None else [self.model.mechanism.digest, *self.model.parameters.names]
        function = self.task.function or self.template
        said = None if function is None else _said(function)
        return {
            "model": model, "code": source_digest(), "vary": _plain(self.vary), "samples": self.cases.samples,
            "design": self.cases.design, "seed": self.cases.seed, "chunk": self.cases.chunk, "kind": self.task.kind,
            "options": _plain(self.task.options), "keep": list(self.task.keep), "function": said,
        }  # fmt: skip

    def _first_of(self, template: Callable[[dict[str, Any]], Model]) -> Model:
        """The model of the first case: what is asked of all is checked with it."""
        values = self.cases.single.values(0)
        plain = {n: float(x[0, 0]) if x.shape[1] == 1 else x[0] for n, x in values.items()}
        for name in list(plain):
            if name.partition(".")[0] in ("q", "v", "a", "tau", "q0", "v0", "wrench", "controller", *targets.GAINS):
                del plain[name]
        found = template(plain)
        require_model("the study's template returned", found)
        return found

    def _check_nominal(self) -> None:
        """States and gains that are given for all cases."""
        if self.model is None or self.task.kind == "function":
            return
        names = self.job.asked.arguments if self.task.kind == "quantity" else targets.STATE[self.task.kind] or ()
        gains = targets.GAINS if isinstance(self.task.options.get("controller"), Mapping) else ()
        for name in (*names, *gains):
            targets.base(self.model, self.task, name)

    def _check_sizes(self) -> None:
        """Axes whose vectors do not fit what they set."""
        sizes = {n: array.shape[1] for n, array in self.cases.single.values(0).items()}
        for name, (target, columns) in self.task.where.items():
            if target == "value" or self.model is None:
                continue
            wanted = targets.size(self.model, target) if columns is None else len(columns)
            if wanted is not None and sizes[name] not in (1, wanted):
                raise InputError(f"axis {name!r} has {sizes[name]} numbers for {wanted}; expected 1 or {wanted}")

    def _is_long(self, cases: int, first: float) -> bool:
        """Whether so many cases that are lanes are worth waiting for compiled code, which no thread delays meanwhile.

        `first` is how long the first case took, code and all. It is computed once more, by code that is there.
        """
        if not self.task.in_lanes or self.template is not None:
            return False
        if first > 3 * INTERPRETED:  # not only because it was traced
            return True
        from polybody.kernels.target import host

        begun = time.perf_counter()
        self.job.compute(0, self.cases.single)
        return (time.perf_counter() - begun) * cases / host().lanes > INTERPRETED

    def _executor(self, workers: int | None, cluster: str | None) -> tuple[Callable[..., Iterator[Any]], Any]:
        """Who computes, and with how many."""
        return executor_of(workers, cluster, self.task.in_lanes and self.template is None, self.cases.chunks)

    def _lanes_of_a_chunk(self) -> int:
        """Cases of a chunk where none is given: by the model, the quantity and the number of cases, nothing else.

        Chunks have at most some megabytes, and eight make the study unless they would be small: a chunk costs about
        0.05 ms beside its kernel, and is what threads and workers share out.
        """
        results = sum(math.prod(shape) for _, shape in self.job.shapes)
        inputs = sum(x.shape[1] for x in self.cases.single.values(0).values())
        room = min(CHUNK_BYTES // (8 * (1 + inputs + results)), LARGEST_CHUNK)
        eighth = -(-len(self) // (8 * BLOCK)) * BLOCK
        return max(min(max(eighth, CHUNKS["quantity"]), room // BLOCK * BLOCK), BLOCK)

    def _check_first(self) -> None:
        """The first case, so that what cannot work for any says so before anything is computed."""
        found = self.job.compute(0, self.cases.single)
        wrong = found["error"].get(0, "")
        if "keep has" in wrong:
            raise InputError(wrong.partition(": ")[2])


def _varied(model: Model | None, names: Sequence[str], kind: str) -> Model | None:
    """The model with the parameters that are varied as inputs."""
    from polybody.description.parameters import parameters_of

    if model is None:
        return None
    known = [p.name for p in parameters_of(model.description)]
    wanted = [n for n in names if n in known or any(full.startswith(f"{n}.") for full in known)]
    return model.with_parameters(*wanted) if wanted else model


def _options(model: Model | None, kind: str, given: Mapping[str, Any], at: Mapping[str, Any] | None) -> dict[str, Any]:
    if kind == "function":
        return {}
    if at is not None and kind != "quantity":
        raise InputError("`at` gives a quantity's arguments; other things have options of their own")
    if kind == "quantity":
        assert model is not None
        asked = quantity_named(model.mechanism, given["quantity"])
        for name in at or {}:
            if name not in asked.arguments:
                offered = nearest(str(name), asked.arguments)
                raise InputError(f"{asked.name} has no argument {name!r}{offered}; it takes "
                                 f"{', '.join(asked.arguments)}")
        return {"quantity": given["quantity"], **{name: float_array(name, x) for name, x in (at or {}).items()}}
    if not isinstance(given[kind], Mapping):
        raise InputError(f"{kind} is {given[kind]!r:.60}; expected a mapping of its options")
    options, known = dict(given[kind]), OPTIONS[kind] or ()
    for name in options:
        if name not in known:
            raise InputError(f"{kind} has no option {name!r}{nearest(str(name), known)}; available: {', '.join(known)}")
    needed = {"rollout": "steps", "simulate": "duration"}.get(kind)
    if needed and needed not in options:
        raise InputError(f"{kind} needs {needed!r}")
    if kind == "rollout":
        whole("steps", options["steps"], 1)
    if kind != "linearize" and "method" in options:
        _check_method(kind, options["method"])
    for name in ("duration", "dt", "rtol", "atol", "sample"):
        if options.get(name) is not None:
            positive(name, options[name])
    law = options.get("controller")
    if targets.made_by_user(options):
        if not law or (not callable(law) and not all(map(callable, law))):
            raise InputError("controller is a list; expected functions of a model that make a controller")
        return options
    for name in law or {}:
        if name not in ("kp", "kd", "target", "gravity"):
            raise InputError(f"controller has no {name!r}; expected kp, kd, target, gravity: a PD law")
    return options


def _check_method(kind: str, method: Any) -> None:
    """What every case would fail with."""
    from polybody.simulation.integrators import METHODS
    from polybody.simulation.rollout import METHODS as OF_ROLLOUTS

    known = list(METHODS) if kind == "simulate" else list(OF_ROLLOUTS)
    if method not in known:
        raise InputError(f"{kind} has no method {method!r}{nearest(str(method), known)}; available: {', '.join(known)}")


def _plain(value: Any) -> Any:
    """Numbers as exact text, so that equal studies have equal digests."""
    if isinstance(value, Mapping):
        return {str(k): _plain(x) for k, x in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if callable(value):
        return _said(value)
    if isinstance(value, list | tuple) and any(map(callable, value)):
        return [_plain(item) for item in value]
    return as_data(value) if isinstance(value, list | tuple | float) else value


def _said(function: Callable[..., Any]) -> str:
    """What distinguishes two functions of users, and two versions of one."""
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{type(function).__qualname__}:{getattr(function, 'digest', getattr(function, '__qualname__', ''))}"
    constants = [c for c in code.co_consts if not hasattr(c, "co_code")]
    digest = hashlib.sha256(code.co_code + repr((constants, code.co_names)).encode()).hexdigest()[:16]
    return f"{function.__module__}:{function.__qualname__}:{digest}"


def named_function(text: str) -> Callable[[Case], Mapping[str, Any]]:
    """The function that "module:name" says, for files."""
    import importlib
    import sys

    module, _, name = text.partition(":")
    if not module or not name:
        raise InputError(f"function is {text!r}; expected 'module:name'")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PolybodyError(f"function {text!r} cannot be found: {error}") from None


__all__ = ["Study", "named_function"]
