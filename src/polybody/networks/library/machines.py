"""Electric motors: windings and shaft. Rotor inertia and bearing are their own; the housing is on the ground."""

from polybody.networks.part import Part

_ROTOR = {"rotor_inertia": ("kg m^2", 0), "damping": ("N m s/rad", 0)}

PARTS = (
    Part("dc_motor", {"winding": "electrical", "shaft": "rotational"},
         {"torque_constant": "N m/A", "resistance": "ohm", "inductance": ("H", 0),
          "speed_constant": ("V s/rad", "torque_constant"), **_ROTOR},
         ["winding.v = resistance*winding.i + inductance*der(winding.i) + speed_constant*shaft.w",
          "shaft.t = rotor_inertia*der(shaft.w) + damping*shaft.w - torque_constant*winding.i"],
         energy="inductance*winding.i^2/2 + rotor_inertia*shaft.w^2/2",
         loss="resistance*winding.i^2 + damping*shaft.w^2 + (speed_constant - torque_constant)*winding.i*shaft.w"),
    Part("bldc_motor", {"d": "electrical", "q": "electrical", "shaft": "rotational"},
         {"pole_pairs": "", "flux": "V s/rad", "resistance": "ohm", "inductance": "H!",
          "q_inductance": ("H!", "inductance"), **_ROTOR},
         ["d.v = resistance*d.i + inductance*der(d.i) - pole_pairs*shaft.w*q_inductance*q.i",
          "q.v = resistance*q.i + q_inductance*der(q.i) + pole_pairs*shaft.w*(inductance*d.i + flux)",
          "shaft.t = rotor_inertia*der(shaft.w) + damping*shaft.w"
          " - pole_pairs*(flux + (inductance - q_inductance)*d.i)*q.i"],
         energy="inductance*d.i^2/2 + q_inductance*q.i^2/2 + rotor_inertia*shaft.w^2/2",
         loss="resistance*(d.i^2 + q.i^2) + damping*shaft.w^2",
         doc="A permanent-magnet synchronous (brushless) motor in rotor axes d and q, by the transformation that keeps "
         "power."),
    Part("pm_motor", {"a": "electrical", "b": "electrical", "c": "electrical", "shaft": "rotational"},
         {"pole_pairs": "", "flux": "V s/rad", "resistance": "ohm", "inductance": "H!", **_ROTOR},
         ["der(angle) = shaft.w",
          "a.v = resistance*a.i + inductance*der(a.i) - pole_pairs*flux*shaft.w*sin(pole_pairs*angle)",
          "b.v = resistance*b.i + inductance*der(b.i) - pole_pairs*flux*shaft.w*sin(pole_pairs*angle - 2*pi/3)",
          "c.v = resistance*c.i + inductance*der(c.i) - pole_pairs*flux*shaft.w*sin(pole_pairs*angle + 2*pi/3)",
          "shaft.t = rotor_inertia*der(shaft.w) + damping*shaft.w + pole_pairs*flux*(a.i*sin(pole_pairs*angle)"
          " + b.i*sin(pole_pairs*angle - 2*pi/3) + c.i*sin(pole_pairs*angle + 2*pi/3))"],
         {"angle": "rad"}, energy="inductance*(a.i^2 + b.i^2 + c.i^2)/2 + rotor_inertia*shaft.w^2/2",
         loss="resistance*(a.i^2 + b.i^2 + c.i^2) + damping*shaft.w^2", doc="The same motor in its three phases."),
    Part("stepper_motor", {"a": "electrical", "b": "electrical", "shaft": "rotational"},
         {"teeth": ("", 50), "torque_constant": "N m/A", "resistance": "ohm", "inductance": "H!",
          "detent_torque": ("N m", 0), **_ROTOR},
         ["der(angle) = shaft.w",
          "a.v = resistance*a.i + inductance*der(a.i) - torque_constant*shaft.w*sin(teeth*angle)",
          "b.v = resistance*b.i + inductance*der(b.i) + torque_constant*shaft.w*cos(teeth*angle)",
          "shaft.t = rotor_inertia*der(shaft.w) + damping*shaft.w + detent_torque*sin(4*teeth*angle)"
          " + torque_constant*(a.i*sin(teeth*angle) - b.i*cos(teeth*angle))"],
         {"angle": "rad"},
         energy="inductance*(a.i^2 + b.i^2)/2 + rotor_inertia*shaft.w^2/2"
         " + detent_torque*(1 - cos(4*teeth*angle))/(4*teeth)",
         loss="resistance*(a.i^2 + b.i^2) + damping*shaft.w^2", doc="A hybrid stepper of two phases."),
)  # fmt: skip
