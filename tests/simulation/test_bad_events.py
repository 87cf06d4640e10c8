"""Events that mean nothing are errors that name them; a NaN crosses no zero, and was never found."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

WRONG = {
    "nan": (lambda t, q, v: np.nan, "returned nan"),
    "nan as text": (lambda t, q, v: np.log(q[0] - 5.0), "returned .*nan"),
    "nan later": (lambda t, q, v: np.sqrt(0.03 - t), "returned .*nan"),
    "None": (lambda t, q, v: None, "returned None"),
    "vector": (lambda t, q, v: q, "expected a finite number"),
}


@pytest.mark.parametrize("which", WRONG)
@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_function_that_returns_no_number_is_an_error_that_names_the_event(which, compiled):
    function, message = WRONG[which]
    with pytest.raises(pb.PolybodyError, match=f"event 'touch' {message}|event 'touch'.*{message}"):
        pb.simulate(pb.load("two-link"), 0.05, events=[pb.Event("touch", function)], compiled=compiled)


def test_wrong_events_and_actions_are_input_errors():
    model = pb.load("two-link")
    with pytest.raises(pb.InputError, match="expected a list"):
        pb.simulate(model, 0.05, events=pb.Event("x", lambda t, q, v: q[0]))
    with pytest.raises(pb.InputError, match="direction is 5"):
        pb.Event("x", lambda t, q, v: q[0], direction=5)
    with pytest.raises(pb.InputError, match="functions of"):
        pb.Event("x", 3.0)  # type: ignore[arg-type]
    for action, message in ((lambda t, q, v: q, "a pair"), (lambda t, q, v: (q * np.nan, v), "q of the action.*nan")):
        event = pb.Event("x", lambda t, q, v: t - 0.02, action=action)
        with pytest.raises(pb.InputError, match=message):
            pb.simulate(model, 0.05, events=[event])


def test_no_list_of_events_and_a_table_without_rows_are_refused():
    model = pb.load("two-link")
    with pytest.raises(pb.InputError, match="events is None"):
        pb.simulate(model, 0.1, events=None)  # type: ignore[arg-type]
    with pytest.raises(pb.InputError, match="table without rows"):
        pb.rollout(model, [0, 0], [0, 0], np.zeros((0, 2)))
