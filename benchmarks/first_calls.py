"""Public calls as text, for `bench_first_answers.py`: each is run once in a process of its own.

Names at hand: pb, np, model, q (closed), v and tau (zeros), frame (the last), pose (its pose), joint (the first with
one number) and its place in q, folder (an empty one), asked(name) for a quantity of the table, recorded() for a
recording of a motion of 2 s, box for a body that can be held, port of a page.
"""

from __future__ import annotations

#: beside every quantity of the table: what users call
CALLS = {
    "batch of 1000": "model.inverse_dynamics(np.tile(q, (1000, 1)), np.tile(v, (1000, 1)), np.tile(v, (1000, 1)))",
    "float32 batch": "model.inverse_dynamics(*(np.tile(x, (64, 1)).astype(np.float32) for x in (q, v, v)))",
    "forward batch of 1000": "model.forward_dynamics(np.tile(q, (1000, 1)), *(np.tile(v, (1000, 1)),) * 2)",
    "mass matrix batch of 1000": "model.mass_matrix(np.tile(q, (1000, 1)))",
    "coriolis matrix batch of 1000": "model.coriolis_matrix(np.tile(q, (1000, 1)), np.tile(v, (1000, 1)))",
    "jacobian batch of 1000": "model.jacobian(np.tile(q, (1000, 1)), frame)",
    "derivatives batch of 1000": "model.forward_dynamics_derivatives(*(np.tile(x, (1000, 1)) for x in (q, v, v)))",
    "float32 forward batch": "model.forward_dynamics(*(np.tile(x, (64, 1)).astype(np.float32) for x in (q, v, v)))",
    "out": "model.mass_matrix(q, out=np.empty((model.nv, model.nv)))",
    "wrenches": "model.inverse_dynamics(q, v, v, wrenches={frame: np.ones(6)})",
    "forward wrenches": "model.forward_dynamics(q, v, v, wrenches={frame: np.ones(6)})",
    "parameters": "model.with_parameters('*.mass').inverse_dynamics(q, v, v)",
    "parameters, all": "model.with_parameters('*').inverse_dynamics(q, v, v)",
    "parameters forward": "model.with_parameters('*.mass').forward_dynamics(q, v, v)",
    "parameters of each state": "(lambda m: m.inverse_dynamics(*(np.tile(x, (64, 1)) for x in (q, v, v)), "
                                "parameters=np.tile(m.parameters.nominal, (64, 1))))(model.with_parameters('*.mass'))",
    "payload": "model.with_payload(frame, 1.0).inverse_dynamics(q, v, v)",
    "gravity": "model.with_gravity((0, 0, 0)).gravity_forces(q)",
    "frame": "model.with_frame('tool', model.body_names[-1]).pose(q, 'tool')",
    "lock": "model.lock(joint, q).mass_matrix(model.lock(joint, q).neutral() if len(q) < 2 else np.delete(q, place))",
    "poses": "model.poses(q)",
    "joint_limits": "model.joint_limits()",
    "tree": "model.tree.forward_dynamics(q, v, v)",
    "independent mass matrix": "model.mass_matrix(q, independent=model.constraints.independent)",
    "compute": "model.compute(q, v, v, quantities=['inverse_dynamics', 'mass_matrix', 'energy'])",
    "jacobian in frame": "model.jacobian(q, frame, axes='frame')",
    "public reactions": "model.reactions(q, v, v)",
    "public integrate": "model.integrate(q, v, 0.1)",
    "public difference": "model.difference(q, q)",
    "normalize": "model.normalize(q)",
    "random_configuration": "model.random_configuration(0)",
    "random_configuration 1000": "model.random_configuration(0, size=1000)",
    "assemble": "model.assemble()",
    "assemble near": "model.assemble(q + 1e-3)",
    "assemble_velocity": "model.assemble_velocity(q, v + 1)",
    "assemble_acceleration": "model.assemble_acceleration(q, v, v + 1)",
    "mobility": "model.mobility(q)",
    "constraints.residual": "model.constraints.residual(q)",
    "constraints.jacobian": "model.constraints.jacobian(q)",
    "constraints.bias": "model.constraints.bias(q, v)",
    "constraints.rank": "model.constraints.rank(q)",
    "constraints.joint_positions": "model.constraints.joint_positions(q)",
    "constraints.solution": "model.constraints.solution(q, v, v)",
    "constraints.loads": "model.constraints.loads(q, v, v)",
    "constraints.joint_motion": "model.constraints.joint_motion(q, v, v)",
    "constraints.loads by multipliers": "model.constraints.loads(q, v, v, route='multipliers')",
    "constraints.coupling_forces": "model.constraints.coupling_forces(q, v, v)",
    "constraints.joint_influence": "model.constraints.joint_influence(q)",
    "constraints.joint_influence 3": "model.constraints.joint_influence(q, 3)",
    "constraints.motion_derivatives": "model.constraints.motion_derivatives(q, v, v)",
    "constraints.projection_step": "model.constraints.projection_step(q, v)",
    "constraints.assemble_dependent": "model.constraints.assemble_dependent(q)",
    "constraints.assembly_modes": "model.constraints.assembly_modes(q)",
    "assemble batch of 100": "model.assemble(np.tile(q, (100, 1)) + 1e-3)",
    "regressor with terms": "model.regressor(q, v, v, terms=('armature', 'viscous', 'coulomb', 'offset'))",
    "regressor.structure": "model.regressor.structure()",
    "regressor.energy": "model.regressor.energy(q, v)",
    "regressor.momentum": "model.regressor.momentum(q, v)",
    "regressor.nonzeros": "model.regressor.nonzeros(q, v, v)",
    "influence": "model.coefficients.influence(q, frame)",
    "influence 2": "model.coefficients.influence(q, frame, 2)",
    "coefficients.task_space_inertia": "model.coefficients.task_space_inertia(q, frame)",
    "coefficients.dynamic_arrays": "model.coefficients.dynamic_arrays(q)",
    "coefficients.center_of_mass": "model.coefficients.center_of_mass(q)",
    "coefficients.centroidal_momentum_matrix": "model.coefficients.centroidal_momentum_matrix(q)",
    "coefficients.reduced_dynamics": "model.coefficients.reduced_dynamics(q)",
    "coefficients.operators": "model.coefficients.operators(q, v)",
    "hybrid_dynamics": "model.actuation.hybrid_dynamics(q, v, v, v, active=[joint])",
    "active_forces": "model.actuation.active_forces(q, v, v)",
    "equivalent_actuator_forces": "model.actuation.equivalent_actuator_forces(q, v)",
    "internal_loads": "model.actuation.internal_loads(q)",
    "holding_forces": "model.actuation.holding_forces(q)",
    "formulation influence": "model.inverse_dynamics(q, v, v, formulation='influence')",
    "formulation network": "model.inverse_dynamics(q, v, v, formulation='network')",
    "formulation operators": "model.inverse_dynamics(q, v, v, formulation='operators')",
    "formulation poincare": "model.inverse_dynamics(q, v, v, formulation='poincare')",
    "forward influence": "model.forward_dynamics(q, v, v, formulation='influence')",
    "forward network": "model.forward_dynamics(q, v, v, formulation='network')",
    "forward operators": "model.forward_dynamics(q, v, v, formulation='operators')",
    "forward poincare": "model.forward_dynamics(q, v, v, formulation='poincare')",
    "mass matrix network": "model.mass_matrix(q, formulation='network')",
    "symbolic": "model.symbolic('none')",
    "casadi forward": "model.casadi('forward_dynamics')",
    "casadi": "model.casadi('inverse_dynamics')",
    "simulate": "pb.simulate(model, 0.02, q, v)",
    "simulate rk4": "pb.simulate(model, 0.02, q, v, method='rk4')",
    "simulate semi-implicit": "pb.simulate(model, 0.02, q, v, method='semi-implicit')",
    "simulate radau": "pb.simulate(model, 0.02, q, v, method='radau')",
    "simulate cvodes": "pb.simulate(model, 0.02, q, v, method='cvodes')",
    "simulate idas": "pb.simulate(model, 0.02, q, v, method='idas')",
    "simulate midpoint": "pb.simulate(model, 0.02, q, v, method='midpoint')",
    "simulate PD": "pb.simulate(model, 0.02, q, v, pb.PD(model, q, 10.0, 1.0))",
    "simulate gravity compensation": "pb.simulate(model, 0.02, q, v, pb.controllers.GravityCompensation(model))",
    "simulate function": "pb.simulate(model, 0.02, q, v, lambda t, q, v: -v)",
    "simulate PD rk4": "pb.simulate(model, 0.02, q, v, pb.PD(model, q, 10.0, 1.0), method='rk4')",
    "simulate PD with gravity": "pb.simulate(model, 0.02, q, v, pb.PD(model, q, 10.0, 1.0, gravity=True))",
    "simulate sampled PD": "pb.simulate(model, 0.02, q, v, pb.controllers.Sampled(pb.PD(model, q, 10.0, 1.0), 1e-3))",
    "simulate computed torque": "pb.simulate(model, 0.02, q, v, pb.controllers.ComputedTorque(model, "
                                "pb.paths.quintic(model, q, q, 0.1)))",
    "simulate table of forces": "pb.simulate(model, 0.02, q, v, pb.controllers.Given(model, np.zeros((3, model.nv)), "
                                "[0.0, 0.01, 0.02]))",
    "simulate impedance": "pb.simulate(model, 0.02, q, v, pb.controllers.Impedance(model, frame, pose[:3, 3], 100.0, "
                          "20.0, rows='position'))",
    "simulate operational space": "pb.simulate(model, 0.02, q, v, pb.controllers.OperationalSpace(model, frame, "
                                  "pose[:3, 3], rows='position'))",
    "simulate observer": "pb.simulate(model, 0.02, q, v, pb.controllers.DisturbanceObserver(model, "
                         "pb.PD(model, q, 10.0, 1.0)))",
    "simulate untraceable function": "pb.simulate(model, 0.02, q, v, lambda t, q, v: np.array([float(x) for x in -v]))",
    "simulate wrench": "pb.simulate(model, 0.02, q, v, wrenches={frame: np.ones(6)})",
    "simulate event": "pb.simulate(model, 0.02, q, v, events=[pb.Event('time', lambda t, q, v: t - 0.01)])",
    "simulate dense": "pb.simulate(model, 0.02, q, v, dense=True).at(0.013)",
    "simulate tight": "pb.simulate(model, 0.02, q, v, rtol=1e-12, atol=1e-13)",
    "simulate without limits": "pb.simulate(model, 0.02, q, v, limits='ignore')",
    "simulate in Python": "pb.simulate(model, 0.005, q, v, compiled=False)",
    "simulate parameters": "(lambda m: pb.simulate(m, 0.02, q, v, parameters=m.parameters.nominal))"
                           "(model.with_parameters('*.mass'))",
    "simulate sets of parameters": "(lambda m: pb.simulate(m, 0.02, q, v, method='rk4', parameters=np.tile("
                                   "m.parameters.nominal, (4, 1))))(model.with_parameters('*.mass'))",
    "audit": "str(pb.simulate(model, 0.02, q, v).audit)",
    "save run": "pb.simulate(model, 0.02, q, v).save(folder + '/run.npz')",
    "rollout semi-implicit": "pb.rollout(model, q, v, steps=10, method='semi-implicit')",
    "rollout PD": "pb.rollout(model, q, v, pb.PD(model, q, 10.0, 1.0), steps=10)",
    "rollout float32": "pb.rollout(model, *(np.tile(x, (16, 1)).astype(np.float32) for x in (q, v)), steps=10)",
    "rollout parameters": "(lambda m: pb.rollout(m, q, v, steps=10, parameters=np.tile(m.parameters.nominal, (4, 1))))"
                          "(model.with_parameters('*.mass'))",
    "rollout": "pb.rollout(model, q, v, steps=10)",
    "rollout tau": "pb.rollout(model, np.tile(q, (16, 1)), np.tile(v, (16, 1)), np.zeros((16, 10, model.nv)))",
    "inverse_kinematics": "pb.inverse_kinematics(model, {frame: pose}, q)",
    "inverse_kinematics point": "pb.inverse_kinematics(model, {frame: pose[:3, 3]}, q)",
    "inverse_kinematics batch": "pb.inverse_kinematics(model, {frame: np.tile(pose, (100, 1, 1))}, q)",
    "reach": "pb.reach(model, [pb.Goal(frame, pose)], q)",
    "transfer": "pb.transfer(model, pb.Joints(*model.constraints.independent or model.joint_names)).mass_matrix(q)",
    "redundant": "pb.redundant(model, pb.Position(frame)).velocity(q, np.zeros(3))",
    "actuator_forces": "pb.actuator_forces(model, q, v, v, limits=None)",
    "actuator_forces within limits": "pb.actuator_forces(model, q, v, v)",
    "transfer to position": "pb.transfer(model, pb.Position(frame)).mass_matrix(q)",
    "performance": "pb.performance(model, frame).measures(q)",
    "base_parameters": "pb.base_parameters(model)",
    "configurations": "pb.configurations(model)",
    "linearize": "pb.linearize(model, q, v, tau)",
    "linearize outputs": "pb.linearize(model, q, v, tau, outputs=[frame])",
    "linearize_along": "pb.linearize_along(model, pb.simulate(model, 0.02, q, v))",
    "derivative by parameters": "pb.derivative(model.with_parameters('*.mass'), 'inverse_dynamics', q, v, v)",
    "derivative": "pb.derivative(model, 'gravity_forces', q, wrt='q')",
    "sensitivities": "pb.sensitivities(model.with_parameters('*.mass'), q0=q, v0=v, duration=0.01)",
    "sensitivities PD": "pb.sensitivities(model.with_parameters('*.mass'), pb.PD(model, q, 10.0, 1.0), q0=q, v0=v, "
                        "duration=0.01)",
    "sensitivities rk4": "pb.sensitivities(model.with_parameters('*.mass'), q0=q, v0=v, duration=0.01, method='rk4', "
                         "dt=1e-3, sample=1e-3)",
    "network": "pb.simulate(pb.network(model), 0.005)",
    "network equations": "pb.network(model).equations()",
    "notebook model": "model._repr_html_()",
    "notebook run": "pb.simulate(model, 0.02, q, v)._repr_html_()",
    "plot": "pb.simulate(model, 0.02, q, v).plot('positions')",
    "plot to file": "pb.simulate(model, 0.02, q, v).plot('positions', folder + '/positions.png')",
    "report": "pb.simulate(model, 0.02, q, v).report(folder + '/report.html')",
    "view": "pb.view(model, port=port, browser=False)",
    "view run": "pb.view(pb.simulate(model, 0.02, q, v), port=port, browser=False)",
    "view and its scene": "__import__('urllib.request').request.urlopen(pb.view(model, port=port, browser=False).url "
                          "+ 'scene.bin').read()",
    "view live": "pb.view(model, live=True, port=port, browser=False)",
    "share": "pb.simulate(model, 0.02, q, v).share(folder + '/page.html')",
    "render": "pb.render(folder + '/model.png', model)",
    "excitation": "pb.excitation(model, harmonics=2, samples=20, iterations=1, tries=1, speed=2.0, effort=np.inf)",
    "identify": "pb.identify(model, recorded(), terms=('viscous',), cutoff=np.inf, consistent=False)",
    "identify consistent": "pb.identify(model, recorded(), terms=('viscous',), cutoff=np.inf)",
    "identify payload": "pb.identify_payload(model, recorded(), recorded(), frame, terms=('viscous',), cutoff=np.inf)",
    "study of a quantity": "pb.Study(model, {model.body_names[0] + '.mass': {'uniform': [1, 2]}}, samples=100, "
                           "quantity='gravity_forces', at={'q': q}).run(folder + '/study', workers=1)",
    "study of rollouts": "pb.Study(model, {'kp': {'uniform': [50, 300]}}, samples=20, rollout={'steps': 10, "
                         "'dt': 1e-3, 'controller': {'kd': 5.0}}).run(folder + '/study', workers=1)",
    "grasp": "pb.grasp(model, box, {frame: np.eye(4)})",
    "grasp forward dynamics": "(lambda g: g.forward_dynamics(g.closed.assemble(), *(np.zeros(g.model.nv),) * 2))"
                              "(pb.grasp(model, box, {frame: np.eye(4)}))",
    "legs": "pb.legs([model], frame)",
    "save": "model.save(folder + '/saved.yaml', lossy=True)",
    "save MJCF": "model.save(folder + '/saved.xml', lossy=True)",
    "export_fmu": "pb.export_fmu(model, folder + '/model.fmu', binary=False)",
    "export_c": "pb.export_c(model, folder + '/c', ['inverse_dynamics'])",
}  # fmt: skip
#: commands of the command line, each a process of its own, from its start to its end; {folder} is an empty one
COMMANDS = {
    "help": "--help",
    "version": "--version",
    "models": "models",
    "info": "info {model}",
    "check": "check {model}",
    "count": "count {model}",
    "loops": "loops {model}",
    "draw": "draw {model} -o {folder}/drawn.png",
    "simulate": "simulate {model} -t 0.1 -o {folder}/run",
    "linearize": "linearize {model} --json",
    "convert": "convert {model} {folder}/saved.yaml --lossy",
    "export-c": "export-c {model} {folder}/c -q inverse_dynamics",
    "network": "network {model} --svg {folder}/graph.svg",
    "derive": "derive {model} --html {folder}/equations.html",
    "performance": "performance {model} -o {folder}/performance.html",
    "demo": "demo --output {folder}/runs",
}
#: seconds within which a call answers; those of first derivatives may take longer
LIMIT, DERIVATIVES = 0.3, 1.0
SLOWER = ("derivatives", "linearize", "derivative", "sensitivities", "radau", "cvodes", "idas", "midpoint",
          "implicit_residual", "export_fmu")  # an FMU has directional derivatives  # fmt: skip


def limit(name: str) -> float:
    """Seconds allowed."""
    return DERIVATIVES if any(part in name for part in SLOWER) else LIMIT


def quantities(frames: list[str]) -> dict[str, str]:
    """Every quantity of the table, by `asked`, with frames for those that need one."""
    from polybody.quantities.table import FAMILIES, QUANTITIES

    parameters = {"relative_pose": f":{frames[-1]}:{frames[1]}", "reactions": ":world"}
    framed = ("pose", "jacobian", "jacobian_rate", "frame_velocity", "frame_acceleration", "task_space_inertia")
    parameters |= dict.fromkeys((*framed, "influence"), f":{frames[-1]}")
    names = [family + parameters.get(family, "") for family in (*QUANTITIES, *FAMILIES)]
    return {name.partition(":")[0]: f"asked({name!r})" for name in names}
