"""Properties that are computed once do not make threads wait for each other."""

import threading

from polybody.properties import cached_property


class Thing:
    def __init__(self, begun=None, go_on=None):
        self.begun, self.go_on, self.computed = begun, go_on, 0

    @cached_property
    def number(self):
        self.computed += 1
        if self.begun is not None:
            self.begun.set()
            self.go_on.wait(20)
        return 7


def test_a_thread_that_computes_a_property_does_not_hold_up_that_of_another_object():
    begun, go_on, answered = threading.Event(), threading.Event(), threading.Event()
    slow = threading.Thread(target=lambda: Thing(begun, go_on).number)
    slow.start()
    assert begun.wait(20)
    fast = threading.Thread(target=lambda: (Thing().number, answered.set()))
    fast.start()
    in_time = answered.wait(5)
    go_on.set()
    slow.join()
    fast.join()
    assert in_time


def test_a_property_is_computed_once():
    thing = Thing()
    assert (thing.number, thing.number, thing.computed) == (7, 7, 1)
