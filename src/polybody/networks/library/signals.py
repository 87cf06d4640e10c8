"""Signals: x is the value; what reads a signal has s = 0."""

from polybody.networks.part import Part

PARTS = (
    Part("signal", "signal", {"value": ""}, ["x = value"], inputs=["value"], doc="A number, or a function of time."),
    Part("step", "signal", {"at": ("s", 0), "before": ("", 0), "after": ("", 1)},
         modes={"before": {"equations": ["x = before"], "to": {"after": "time > at"}},
                "after": {"equations": ["x = after"], "to": {}}}),
    Part("ramp", "signal", {"slope": "1/s", "offset": ("", 0)}, ["x = offset + slope*time"]),
    Part("sine", "signal", {"amplitude": ("", 1), "frequency": "Hz", "phase": ("rad", 0), "offset": ("", 0)},
         ["x = offset + amplitude*sin(2*pi*frequency*time + phase)"]),
    Part("gain", {"u": "signal", "y": "signal"}, {"factor": ""}, ["u.s = 0", "y.x = factor*u.x"]),
    Part("difference", {"u": "signal", "minus": "signal", "y": "signal"}, {},
         ["u.s = 0", "minus.s = 0", "y.x = u.x - minus.x"]),
    Part("sum", {"u": "signal", "plus": "signal", "y": "signal"}, {}, ["u.s = 0", "plus.s = 0", "y.x = u.x + plus.x"]),
    Part("integrator", {"u": "signal", "y": "signal"}, {"factor": ("1/s", 1)}, ["u.s = 0", "der(y.x) = factor*u.x"]),
    Part("lag", {"u": "signal", "y": "signal"}, {"time_constant": "s!"},
         ["u.s = 0", "time_constant*der(y.x) = u.x - y.x"]),
    Part("pi_controller", {"u": "signal", "y": "signal"}, {"proportional": "", "integral": ("1/s", 0)},
         ["u.s = 0", "der(sum) = u.x", "y.x = proportional*u.x + integral*sum"], {"sum": "s"}),
    Part("saturation", {"u": "signal", "y": "signal"}, {"limit": ("", 1)},
         ["u.s = 0", "y.x = min(max(u.x, -limit), limit)"]),
)  # fmt: skip
