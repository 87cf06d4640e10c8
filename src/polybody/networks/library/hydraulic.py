"""Hydraulic parts: p is the pressure of the first terminal over the second, q the flow into the first.

The tank is the ground.
"""

from polybody.networks.part import Part

PARTS = (
    Part("cylinder", {"head": "hydraulic", "tail": "hydraulic", "rod": "translational"},
         {"head_area": "m^2!", "tail_area": "m^2!", "head_volume": "m^3!", "tail_volume": "m^3!",
          "bulk_modulus": ("Pa!", 1.4e9), "leakage": ("m^3/s/Pa", 0)},
         ["der(stroke) = rod.v",
          "head.q = head_area*rod.v + (head_volume + head_area*stroke)/bulk_modulus*der(head.p)"
          " + leakage*(head.p - tail.p)",
          "tail.q = -tail_area*rod.v + (tail_volume - tail_area*stroke)/bulk_modulus*der(tail.p)"
          " - leakage*(head.p - tail.p)",
          "rod.f = -head_area*head.p + tail_area*tail.p"],
         {"stroke": "m"}, doc="Two chambers of compressible oil around a piston; volumes at stroke zero."),
    Part("line", "hydraulic", {"resistance": "Pa s/m^3", "inertance": ("kg/m^4", 0)},
         ["p = resistance*q + inertance*der(q)"], energy="inertance*q^2/2", loss="resistance*q^2",
         doc="A pipe: laminar resistance and the inertia of its oil; put an accumulator at its end for compliance."),
    Part("accumulator", "hydraulic", {"compliance": "m^3/Pa!"}, ["q = compliance*der(p)"], energy="compliance*p^2/2"),
    Part("orifice", "hydraulic", {"area": "m^2!", "discharge": ("", 0.62), "density": ("kg/m^3", 870),
                                  "laminar": ("Pa!", 1e3)},
         ["q = discharge*area*p*(2/density)^0.5/(p^2 + laminar^2)^0.25"], loss="p*q",
         doc="Turbulent flow, q ~ √p; below `laminar` it goes over to q ~ p."),
    Part("valve", {"": "hydraulic", "opening": "signal"},
         {"area": "m^2!", "discharge": ("", 0.62), "density": ("kg/m^3", 870), "laminar": ("Pa!", 1e3)},
         ["opening.s = 0",
          "q = discharge*area*min(max(opening.x, 0), 1)*p*(2/density)^0.5/(p^2 + laminar^2)^0.25"], loss="p*q",
         doc="An orifice that a signal opens from 0 to 1."),
    Part("servo_valve", {"supply": "hydraulic", "a": "hydraulic", "b": "hydraulic", "spool": "signal"},
         {"flow_gain": "m^3/s!", "pressure_gain": "m^3/s/Pa!"},
         ["spool.s = 0", "a.q = -flow_gain*spool.x + pressure_gain*a.p",
          "b.q = flow_gain*spool.x + pressure_gain*b.p", "supply.q = flow_gain*max(spool.x, -spool.x)"],
         doc="A four-way valve linearised about its centre: flow into a, out of b."),
    Part("pump", {"shaft": "rotational", "": "hydraulic"}, {"displacement": "m^3/rad"},
         ["q = -displacement*shaft.w", "shaft.t = displacement*p"], doc="Ideal pump or motor."),
    Part("pressure_source", "hydraulic", {"pressure": "Pa"}, ["p = pressure"], inputs=["pressure"]),
    Part("flow_source", "hydraulic", {"flow": "m^3/s"}, ["q = -flow"], inputs=["flow"],
         doc="It pumps into its first terminal."),
    Part("pressure_sensor", {"probe": "hydraulic", "out": "signal"}, {"gain": ("1/Pa", 1)},
         ["probe.q = 0", "out.x = gain*probe.p"]),
    Part("flow_sensor", {"probe": "hydraulic", "out": "signal"}, {"gain": ("s/m^3", 1)},
         ["probe.p = 0", "out.x = gain*probe.q"]),
)  # fmt: skip
