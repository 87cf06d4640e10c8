"""Who computes the chunks: this process, processes of this machine, or a Ray cluster. All give the same bytes.

An executor is a generator of (chunk, its columns or the content of its file, how many cases failed): at most a few
chunks for each worker are under way, so that memory stays bounded however many there are. In this process chunks of
lanes are computed side by side, each by one thread: starting threads for every chunk would cost as much as a small
chunk. Workers take the driver's machine code: on this machine from its cache, on others it is sent once to each node,
and is used where the processor has the same features.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as ready
from threading import Thread
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.interrupts import Stop, awaited, not_passed_to_children
from polybody.kernels.pool import cores, thread_count, threads
from polybody.studies.dataset import encoded, table_of
from polybody.studies.tasks import Job

#: chunk, its columns (or their table, or the content of their file), how many of its cases failed
Result = tuple[int, Any, int]
#: chunks under way for each worker
AHEAD = 2
#: how often a chunk whose worker died is tried anew
PATIENCE = 4
#: seconds in which a pool reports the death of a worker, unless that worker died while it wrote a result
GRACE = 1.0
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_on_this_node: dict[str, Job] = {}  # the job that this worker of Ray computes now, by its key
_job: Job | None = None
_form: str | None = None


def content_of(job: Job, index: int, form: str | None) -> Result:
    """One chunk, as the bytes of its file."""
    columns = job.compute(index)
    return index, encoded(columns, form or "arrow"), len(columns["error"])


def serial(job: Job, indices: Sequence[int], workers: int, form: str | None) -> Iterator[Result]:
    """In this process and thread, chunk after chunk: what a user's function does may not bear more threads."""
    for index in indices:
        columns = job.compute(index)
        yield index, columns, len(columns["error"])


def threaded(job: Job, indices: Sequence[int], workers: int, form: str | None) -> Iterator[Result]:
    """In this process, with as many threads as `pb.threads` allows.

    Where files are written, that is this thread's work while they compute the next chunks and lay out their columns;
    otherwise it computes as they do. Parquet's encoding takes longer than most kernels: several threads share that too.
    """
    count = max(min(workers, len(indices)), 1)
    share = workers // count  # of a few chunks each takes several threads
    stop = Stop()

    def one(index: int) -> Result:
        with threads(share), stop:
            columns = job.compute(index)
            return index, laid_out(columns), len(columns["error"])

    def laid_out(columns: dict[str, Any]) -> Any:
        if form is None:
            return columns
        return encoded(columns, form) if form == "parquet" and count > 1 else table_of(columns)

    if form is not None:
        yield from _in_order(one, indices, count, stop)
    elif workers == 1:
        yield from map(one, indices)
    else:
        yield from _all_alike(one, indices, count - 1, stop)


def _in_order(one: Callable[[int], Result], indices: Sequence[int], count: int, stop: Stop) -> Iterator[Result]:
    """So many threads compute, a few chunks ahead of the caller, who writes."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="polybody study")
    todo, waiting = iter(indices), deque[Future[Result]]()
    try:
        while True:
            waiting.extend(pool.submit(one, index) for index in islice(todo, count * AHEAD - len(waiting)))
            if not waiting:
                return
            yield awaited(waiting.popleft())
    finally:
        stop.now = True
        pool.shutdown(wait=True, cancel_futures=True)


def _all_alike(one: Callable[[int], Result], indices: Sequence[int], helpers: int, stop: Stop) -> Iterator[Result]:
    """This thread and helpers take the next chunk when they are free."""
    left, found = deque(indices), deque[Result]()

    def work() -> None:
        while left:
            try:
                index = left.popleft()
            except IndexError:  # another thread was faster
                return
            found.append(one(index))

    pool = ThreadPoolExecutor(max(helpers, 1), thread_name_prefix="polybody study")
    started = [pool.submit(work) for _ in range(helpers)]
    try:
        while left:
            try:
                index = left.popleft()
            except IndexError:
                break
            yield one(index)
            while found:
                yield found.popleft()
        for helper in started:
            awaited(helper)
        yield from found
    finally:
        left.clear()
        stop.now = True
        pool.shutdown(wait=True)


# ---- processes -------------------------------------------------------------------------------------------------------


def _begin(job: Job, form: str | None, driver: Connection) -> None:
    global _job, _form
    _job, _form = job, form
    _wait_for_code()
    Thread(target=_end_with, args=(driver,), daemon=True).start()


def _wait_for_code() -> None:
    """Kernels that the driver did not need are compiled before they answer, unless the user chose otherwise."""
    if (os.environ.get("POLYBODY_TIER") or "auto") == "auto":
        os.environ["POLYBODY_TIER"] = "optimised"


def _end_with(driver: Connection) -> None:
    """End this process when the driver closes its end of the pipe: by its will, or because it was killed."""
    driver.poll(None)
    os._exit(1)


def _one(index: int) -> Result:
    assert _job is not None
    with threads(1):
        return content_of(_job, index, _form)


def processes(job: Job, indices: Sequence[int], workers: int, form: str | None) -> Iterator[Result]:
    """Processes of this machine, one thread each; a worker that dies takes its chunks only, and is replaced."""
    with _alone():
        yield from _pooled(job, iter(indices), workers, form)


@contextmanager
def _alone() -> Iterator[None]:
    """Libraries of linear algebra use one thread in processes that start now: more would wait for each other."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _pooled(job: Job, todo: Iterator[int], workers: int, form: str | None) -> Iterator[Result]:
    again: list[int] = []
    deaths: dict[int, int] = {}
    while True:
        context = get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(job, form, theirs))
        waiting: dict[Future[Result], int] = {}
        try:
            while True:
                while len(waiting) < workers * AHEAD:
                    index = again.pop() if again else next(todo, None)
                    if index is None:
                        break
                    with not_passed_to_children():
                        waiting[pool.submit(_one, index)] = index
                if not waiting:
                    return
                finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)  # in pieces, see `awaited`
                if not finished and _any_ended(pool) and not wait(waiting, GRACE, FIRST_COMPLETED).done:
                    _cut_off(pool)
                for future in finished:
                    index = waiting.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        waiting[future] = index
                        raise
        except BrokenProcessPool:
            for index in waiting.values():
                again.append(index)
                deaths[index] = deaths.get(index, 0) + 1
                if deaths[index] > PATIENCE:
                    raise PolybodyError(f"workers died {deaths[index]} times with chunk {index} under way: it may need "
                                        "more memory than there is (take a smaller chunk), or the script that starts "
                                        "the study lacks if __name__ == '__main__':") from None
        finally:
            if waiting:  # interrupted: Python would wait at its end for chunks under way, and for workers that start
                _cut_off(pool)
            pool.shutdown(wait=False, cancel_futures=True)
            ours.close()
            theirs.close()


def _workers_of(pool: ProcessPoolExecutor) -> list[Any]:
    return list((getattr(pool, "_processes", None) or {}).values())


def _any_ended(pool: ProcessPoolExecutor) -> bool:
    return bool(ready([process.sentinel for process in _workers_of(pool)], timeout=0))


def _cut_off(pool: ProcessPoolExecutor) -> None:
    """Kill the workers and close this process's end of the pipe they write to.

    The pool's thread may be reading a result of which a killed worker wrote a part only: it would wait for the rest for
    ever, and Python at its end for that thread.
    """
    for process in _workers_of(pool):
        process.kill()
    results = getattr(pool, "_result_queue", None)
    if results is not None:
        results._writer.close()


# ---- Ray -------------------------------------------------------------------------------------------------------------


def connect(cluster: str) -> Any:
    """Ray, connected to a cluster: "auto" or an address. What does not fit says so before anything is computed."""
    try:
        import ray
    except ImportError:
        raise PolybodyError("clusters are Ray's; pip install polybody[cluster]") from None
    if not ray.is_initialized():
        _require_listener(cluster)
        try:
            ray.init(address=cluster, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            if "ersion" in str(error):
                text = " ".join(str(error).split())  # the versions are in the lines that follow
                raise PolybodyError(f"the cluster at {cluster!r} runs another version of Ray or Python than this "
                                    f"process (Ray {ray.__version__}): {text}; install the same on all nodes") from None
            raise InputError(f"no Ray cluster at {cluster!r}: {text}; start one with 'ray start --head' and join "
                             "others with 'ray start --address=HOST:6379'") from None
    return ray


def _require_listener(cluster: str) -> None:
    """Somebody listens at the address: Ray itself would try for minutes."""
    host, _, port = cluster.removeprefix("ray://").rpartition(":")
    if cluster in ("auto", "local") or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"no Ray cluster at {cluster!r}: {error}; start one with 'ray start --head' and join others "
                         "with 'ray start --address=HOST:6379'") from None


def _on_node(key: str, parts: list[Any], index: int, form: str | None) -> Result:
    """One chunk by a worker of Ray, which takes the job out of the object store once: as a task's own argument it would
    be unpickled for every chunk, and know none of the code that it has used."""
    if key not in _on_this_node:
        import ray

        from polybody.kernels import cache

        _wait_for_code()
        job, codes = ray.get(parts)
        for digest, kind, facts, code in codes:
            if not (cache.folder() / (digest + kind)).exists():
                cache.store(digest, facts, code, kind)
        _on_this_node.clear()
        _on_this_node[key] = job
    with threads(1):
        return content_of(_on_this_node[key], index, form)


def on_ray(job: Job, indices: Sequence[int], cluster: str, form: str | None) -> Iterator[Result]:
    """Tasks of a Ray cluster; those of workers and nodes that are lost are run again elsewhere."""
    ray = connect(cluster)
    from polybody.kernels import cache

    parts = [ray.put(job), ray.put(cache.used())]  # in a list: workers fetch them when they need to
    given = uuid.uuid4().hex, parts
    remote = ray.remote(num_cpus=1, max_retries=-1, retry_exceptions=False)(_on_node)
    todo, waiting = iter(indices), {}
    try:
        while True:
            width = max(1, int(ray.cluster_resources().get("CPU", 1))) * AHEAD
            for index in islice(todo, max(width - len(waiting), 0)):
                waiting[remote.options(name=f"study chunk {index}").remote(*given, index, form)] = index
            if not waiting:
                return
            finished, _ = ray.wait(list(waiting), num_returns=1, timeout=5.0)
            for reference in finished:
                index = waiting.pop(reference)
                try:
                    yield ray.get(reference)
                except (ray.exceptions.ObjectLostError, ray.exceptions.WorkerCrashedError,
                        ray.exceptions.NodeDiedError):  # fmt: skip
                    waiting[remote.options(name=f"study chunk {index}").remote(*given, index, form)] = index
    finally:
        for reference in waiting:
            ray.cancel(reference, force=False)


def executor_of(
    workers: int | None, cluster: str | None, lanes: bool, chunks: int
) -> tuple[Callable[..., Iterator[Result]], Any]:
    """(the generator, its last argument): lanes, and what is one chunk, run here unless a number of workers or a
    cluster is given."""
    if cluster is not None:
        if workers is not None:
            raise InputError("give workers for processes of this machine, or a cluster; not both")
        return on_ray, cluster
    count = (1 if lanes or chunks == 1 else cores()) if workers is None else workers
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
        raise InputError(f"workers is {workers!r}; expected a whole number of at least 1")
    if count > 1:
        return processes, int(count)
    return (threaded, thread_count()) if lanes else (serial, 1)


__all__ = ["connect", "content_of", "executor_of", "on_ray", "processes", "serial", "threaded"]
