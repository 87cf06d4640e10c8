"""A real Ray cluster of two nodes: workers, a node and the driver are killed in mid-study."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from polybody.errors import InputError
from polybody.studies.executors import connect

pytest.importorskip("pyarrow")
pytest.importorskip("ray")
pytest.importorskip("psutil")

from tests.studies.cluster import killed_driver, same, study, two_nodes, workers


def test_kills_of_worker_node_and_driver_change_nothing(tmp_path: Path) -> None:
    serial = study().run(tmp_path / "serial", workers=1)
    with two_nodes() as cluster:
        left = killed_driver(tmp_path / "driver", cluster.address, 3)
        assert 3 <= left < study().cases.chunks
        node = next(iter(cluster.worker_nodes))
        acts, killed = {60: "worker", 120: "node"}, []

        def progress(finished: int, cases: int, failed: int) -> None:
            due = next((k for k in acts if finished >= k), None)
            if due is None or (acts[due] == "worker" and not workers()):
                return  # workers may be between two tasks: the next call will find one
            if acts.pop(due) == "worker":
                for pid in workers()[:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            else:
                cluster.remove_node(node, allow_graceful=False)

        ray = study().run(tmp_path / "ray", cluster=cluster.address, progress=progress)
        assert not acts
        assert killed
        assert same(ray, serial)
        assert same(study().run(tmp_path / "driver", cluster=cluster.address), serial)


def test_an_address_without_a_cluster_is_said_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"give workers for processes of this machine, or a cluster"):
        study().run(tmp_path / "out", cluster="auto", workers=2)
    with pytest.raises(InputError, match=r"no Ray cluster at '127.0.0.1:1': .*ray start --head"):
        study().run(tmp_path / "out", cluster="127.0.0.1:1")
    assert not (tmp_path / "out").exists()


def test_another_version_of_ray_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import ray

    from polybody.errors import PolybodyError

    def refuse(**options: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.9.1")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr("polybody.studies.executors._require_listener", lambda cluster: None)
    with pytest.raises(PolybodyError, match=r"another version of Ray .*2.9.0 Python: 3.9.1; install the same"):
        connect("10.0.0.1:6379")
    with pytest.raises(PolybodyError):
        study().run(tmp_path / "out", cluster="10.0.0.1:6379")
    assert not (tmp_path / "out").exists()
