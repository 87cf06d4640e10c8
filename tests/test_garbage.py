"""The search for garbage is put off, and goes on as it was."""

import gc
import subprocess
import sys
import weakref

import pytest

from polybody.garbage import uncollected


def test_collection_is_off_inside_and_on_again_behind():
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), uncollected():
        raise ValueError("inside")
    assert gc.isenabled()


def test_who_has_switched_it_off_keeps_it_off():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_made_inside_is_found_later():
    class Cycle:
        own: object = None

    with uncollected():
        cycle = Cycle()
        cycle.own = cycle
        gone = weakref.ref(cycle)
        del cycle
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_objects_that_a_program_has_frozen_stay_frozen():
    code = "import gc; gc.freeze(); n = gc.get_freeze_count(); import polybody.garbage as g\n"
    code += "with g.uncollected():\n    pass\nassert gc.get_freeze_count() >= n - 5 > 0, (n, gc.get_freeze_count())"
    subprocess.run([sys.executable, "-c", code], check=True)
