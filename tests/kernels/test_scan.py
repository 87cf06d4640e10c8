"""Rolled tree scans against plain loops over the nodes."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

from polybody.errors import InputError
from polybody.kernels import cache, programs, scan
from polybody.kernels.kernel import MANY, Form
from polybody.kernels.scan import INWARD, OUTWARD, Pass, Scan
from polybody.kernels.target import host, without_avx512


def random_tree(n: int, rng: np.random.Generator, chain: float = 0.7) -> list[int]:
    """Parents of a tree that is mostly a chain, with branches and several children of the root."""
    return [
        -1 if i == 0 or rng.random() < 0.05 else (i - 1 if rng.random() < chain else int(rng.integers(i)))
        for i in range(n)
    ]


def weights_scan(parents, kinds, w):
    """Path sums outwards, subtree sums inwards; kind "flip" negates what it passes on outwards."""

    def path(kind):
        c, before = ca.SX.sym("w"), ca.SX.sym("p", 2)
        sign = -1 if kind == "flip" else 1
        after = ca.vertcat(sign * before[0] + c, before[1] + 1)
        return ca.Function("path", [c, before], [after, c])

    def below(kind):
        here = ca.SX.sym("b")
        path_ = ca.SX.sym("p", 2)
        return ca.Function("below", [here, path_], [here, ca.vertcat(here, path_)])

    n = len(parents)
    return Scan(
        parents, kinds, {"w": w[:, None]}, {"path": 2, "below": 1}, {"all": range(0, 3 * n, 3)},
        [
            Pass("path", OUTWARD, path, constants=["w"], parent=["path"], writes=["path", "below"]),
            Pass("below", INWARD, below, own=["below", "path"], adds=["below"], outputs=["all"]),
        ],
        root={"path": [10.0, 0.0]}, root_outputs={"total": "below"},
    )  # fmt: skip


def weights_oracle(parents, kinds, w):
    n = len(parents)
    path, depth = np.zeros(n), np.zeros(n)
    below = w.copy()
    for i, p in enumerate(parents):
        before, level = (10.0, 0) if p < 0 else (path[p], depth[p])
        path[i], depth[i] = (-before if kinds[i] == "flip" else before) + w[i], level + 1
    total = 0.0
    for i in reversed(range(n)):
        if parents[i] >= 0:
            below[parents[i]] += below[i]
        else:
            total += below[i]
    return np.stack([below, path, depth], axis=1).ravel(), total


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_sums_along_paths_and_over_subtrees(n):
    rng = np.random.default_rng(n)
    parents, kinds, w = random_tree(n, rng), list(rng.choice(["keep", "flip"], n)), rng.normal(size=n)
    kernel = scan.build("weights", [], [("all", (n, 3)), ("total", (1,))], weights_scan(parents, kinds, w), "weights")
    everything, total = kernel()
    wanted, wanted_total = weights_oracle(parents, kinds, w)
    np.testing.assert_allclose(everything.ravel(), wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(total[0], wanted_total, rtol=1e-13, atol=1e-13)


class Springs:
    """Masses on a tree of springs: node i hangs on its parent by one spring ("line") or two ("plane").

    Positions outwards (the parent's, plus the own displacement, plus a bend sin q), forces inwards:
    F_i = k_i x_i + Σ_children F, τ_i = F_i · (1 + cos q). Outputs: forces; the root collects the total.
    """

    widths = {"line": 1, "plane": 2}  # noqa: RUF012

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n = n
        self.parents = random_tree(n, rng)
        self.kinds = list(rng.choice(["line", "plane"], n))
        self.k = rng.uniform(0.5, 2, (n, 1))
        self.rest = rng.normal(size=(n, 2))
        sizes = [self.widths[kind] for kind in self.kinds]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.size = int(sum(sizes))

    def outward(self, kind):
        r = self.widths[kind]
        rest, q, before = ca.SX.sym("rest", 2), ca.SX.sym("q", r), ca.SX.sym("x", 2)
        moved = ca.vertcat(q[0], ca.sin(q[0])) if kind == "line" else q + 0.1 * ca.sin(q)
        return ca.Function("outward", [rest, q, before], [before + rest + moved, ca.cos(q) + 1])

    def force(self, kind):
        k, x = ca.SX.sym("k"), ca.SX.sym("x", 2)
        return ca.Function("force", [k, x], [k * x])

    def inward(self, kind):
        r = self.widths[kind]
        f, bend = ca.SX.sym("f", 2), ca.SX.sym("bend", r)
        return ca.Function("inward", [f, bend], [f, f[:r] * bend])

    def kernel(self, **options):
        described = Scan(
            self.parents, self.kinds, {"k": self.k, "rest": self.rest}, {"x": 2, "f": 2, "bend": 2},
            {"q": self.offsets, "tau": self.offsets},
            [
                Pass("out", OUTWARD, self.outward, ["rest"], ["q"], parent=["x"], writes=["x", "bend"]),
                Pass("force", OUTWARD, self.force, constants=["k"], own=["x"], writes=["f"]),
                Pass("in", INWARD, self.inward, own=["f", "bend"], adds=["f"], outputs=["tau"]),
            ],
            root={"x": [0.3, -0.2]}, root_outputs={"total": "f"},
        )  # fmt: skip
        return scan.build(
            "springs", [("q", self.size)], [("tau", (self.size,)), ("total", (2,))], described, "springs", **options
        )

    def oracle(self, q):
        x, f, tau, total = np.zeros((self.n, 2)), np.zeros((self.n, 2)), np.zeros(self.size), np.zeros(2)
        parts = [q[o : o + self.widths[kind]] for o, kind in zip(self.offsets, self.kinds, strict=True)]
        for i, p in enumerate(self.parents):
            own = parts[i]
            moved = np.array([own[0], np.sin(own[0])]) if self.kinds[i] == "line" else own + 0.1 * np.sin(own)
            x[i] = (np.array([0.3, -0.2]) if p < 0 else x[p]) + self.rest[i] + moved
        f += self.k * x
        for i in reversed(range(self.n)):
            r = self.widths[self.kinds[i]]
            tau[self.offsets[i] : self.offsets[i] + r] = f[i][:r] * (np.cos(parts[i]) + 1)
            if self.parents[i] < 0:
                total += f[i]
            else:
                f[self.parents[i]] += f[i]
        return tau, total


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("states", [1, 3, 9, 64])
def test_forces_of_a_tree_of_springs(n, lanes, states):
    springs = Springs(n, seed=n)
    q = np.random.default_rng(states).normal(size=(states, springs.size))
    tau, total = springs.kernel(lanes=lanes)(q)
    for k in range(states):
        wanted_tau, wanted_total = springs.oracle(q[k])
        np.testing.assert_allclose(tau[k], wanted_tau, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(total[k], wanted_total, rtol=1e-12, atol=1e-11)


def test_lone_states_batches_and_threads_agree():
    springs = Springs(30, seed=1)
    kernel = springs.kernel()
    q = np.random.default_rng(0).normal(size=(3000, springs.size))
    tau, total = kernel(q)
    for k in (0, 17, 2999):
        alone = kernel.call(q[k])
        np.testing.assert_array_equal(alone[0], tau[k])
        np.testing.assert_array_equal(alone[1], total[k])
    broadcast = kernel(np.broadcast_to(q[5], (2, 3, springs.size)))[0]
    np.testing.assert_array_equal(broadcast, np.broadcast_to(tau[5], (2, 3, springs.size)))


def test_one_compilation_serves_every_length(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    programs._programs.clear()
    for n in (20, 50, 1000):
        springs = Springs(n, seed=2)
        q = np.random.default_rng(n).normal(size=(2, springs.size)) * 0.1
        np.testing.assert_allclose(springs.kernel()(q)[0][1], springs.oracle(q[1])[0], rtol=1e-10, atol=1e-9)
    assert sum(e.name == "springs" for e in cache.entries()) == 1


def test_field_read_and_written_in_one_step_is_read_as_it_was():
    def swap(kind):
        a = ca.SX.sym("a", 3)
        return ca.Function("swap", [a], [a[[2, 0, 1]]])

    def start(kind):
        q = ca.SX.sym("q", 3)
        return ca.Function("start", [q], [q])

    def show(kind):
        a = ca.SX.sym("a", 3)
        return ca.Function("show", [a], [a])

    described = Scan(
        [-1, 0], ["k", "k"], {}, {"a": 3}, {"q": [0, 3], "y": [0, 3]},
        [
            Pass("start", OUTWARD, start, inputs=["q"], writes=["a"]),
            Pass("swap", OUTWARD, swap, own=["a"], writes=["a"]),
            Pass("show", INWARD, show, own=["a"], outputs=["y"]),
        ],
    )  # fmt: skip
    kernel = scan.build("swap", [("q", 6)], [("y", (6,))], described, "swap")
    np.testing.assert_array_equal(kernel(np.arange(6.0)), [2, 0, 1, 5, 3, 4])


def refuse(message, key="refused", **changes):
    def step(kind):
        c, q = ca.SX.sym("c"), ca.SX.sym("q")
        return ca.Function("step", [c, q], [c * q])

    parts = {
        "parents": [-1, 0], "kinds": ["k", "k"], "constants": {"c": np.ones((2, 1))}, "fields": {"a": 1},
        "slices": {"q": [0, 1]}, "passes": [Pass("p", OUTWARD, step, constants=["c"], inputs=["q"], writes=["a"])],
    } | changes  # fmt: skip
    with pytest.raises(InputError, match=message):
        scan.build("toy", [("q", 2)], [], Scan(**parts), key)


def test_senseless_scans_are_refused_by_name():
    step = lambda kind: None  # noqa: E731
    refuse("node 1 has parent 1", parents=[-1, 1])
    refuse("1 kinds for 2 nodes", kinds=["k"])
    refuse(r"constants 'c' have shape \(3, 1\); expected \(2, width\)", constants={"c": np.ones((3, 1))})
    refuse("direction 'sideways'", passes=[Pass("p", "sideways", step)])
    refuse("names 'b' in own", passes=[Pass("p", OUTWARD, step, own=["b"])])
    refuse("must go inward", passes=[Pass("p", OUTWARD, step, adds=["a"])])
    refuse(r"node 1 has q\[2:3\]; q has 2 numbers", slices={"q": [0, 2]})
    refuse("root has 'a' of 2 numbers", root={"a": [1, 2]})
    refuse("root_outputs", root_outputs={"y": "a"})
    q = ca.SX.sym("q")
    wrong = lambda kind: ca.Function("w", [q], [2 * q])  # noqa: E731
    refuse("the step takes 1", key="w", passes=[Pass("p", OUTWARD, wrong, constants=["c"], inputs=["q"], writes=["a"])])
    wide = lambda kind: ca.Function("w", [q], [ca.vertcat(q, q)])  # noqa: E731
    refuse("'a' has 2 numbers, at most 1", key="v", passes=[Pass("p", OUTWARD, wide, inputs=["q"], writes=["a"])])
    one = lambda kind: ca.Function("w", [q], [q])  # noqa: E731
    refuse("so it must go rootward", carried={"a": 1}, passes=[Pass("p", OUTWARD, one, carried=["a"])])
    refuse("writes what it carries only", passes=[Pass("p", scan.ROOTWARD, one, writes=["a"])])
    walk = [Pass("p", scan.ROOTWARD, one, carried=["w"])]
    refuse("begins 'w' from ''", carried={"w": 1}, walkers=[(0, 0, 0)], passes=walk)
    refuse(r"walker \(2, 0, 0\)", walkers=[(2, 0, 0)])
    refuse("'q' is shared; expected a part of an output", shared=["q"])
    refuse("partners must be 2 nodes", partners=[0, 5])
    refuse("among its totals", passes=[Pass("p", OUTWARD, one, own=["a"], totals=["a"])])


@pytest.mark.parametrize("ends", [(0, 2), (1, -1), (-1, 1), (2, 2)], ids=str)
def test_a_node_between_two_others_reads_and_changes_both(ends):
    """Nodes 0 to 2 keep q; node 3 pulls its parent towards its partner: x_a += d, x_b −= 2 d with d = x_b − x_a."""

    def keep(kind):
        q = ca.SX.sym("q")
        return ca.Function("keep", [q], [q]) if kind == "body" else None

    def pull(kind):
        a, b = ca.SX.sym("a"), ca.SX.sym("b")
        return ca.Function("pull", [a, b], [b - a, -2 * (b - a), (b - a) ** 2]) if kind == "spring" else None

    def show(kind):
        x = ca.SX.sym("x")
        return ca.Function("show", [x], [x]) if kind == "body" else None

    a, b = ends
    described = Scan(
        [-1, 0, 1, a], ["body"] * 3 + ["spring"], {}, {"x": 1, "stretch": 1}, {"q": [0, 1, 2, 0], "y": [0, 1, 2, 0]},
        [
            Pass("keep", OUTWARD, keep, inputs=["q"], writes=["x"]),
            Pass("pull", INWARD, pull, parent=["x"], partner=["x"], adds=["x"], partner_adds=["x"], totals=["stretch"]),
            Pass("show", OUTWARD, show, own=["x"], outputs=["y"]),
        ],
        root={"x": [7.0]}, root_outputs={"total": "stretch"}, partners=[-1, -1, -1, b],
    )  # fmt: skip
    kernel = scan.build("pull", [("q", 3)], [("y", (3,)), ("total", ())], described, "pull")
    q = np.array([1.0, 3.0, 10.0])
    x = np.append(q, 7.0)  # −1 is the root
    d = x[b] - x[a]
    x[a] += d
    x[b] -= 2 * d
    y, total = kernel(np.tile(q, (5, 1)))
    np.testing.assert_allclose(y, np.tile(x[:3], (5, 1)))
    np.testing.assert_allclose(total, d * d)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-4)])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_walkers_fill_rows_and_columns_of_a_matrix(n, dtype, tolerance):
    """Σ of weights on the way between two nodes of one path, times a sign above the diagonal; others stay zero."""
    rng = np.random.default_rng(n)
    parents = random_tree(n, rng)
    w = rng.normal(size=n)

    def start(kind):
        q = ca.SX.sym("q")
        return ca.Function("start", [q], [q, ca.vertcat(0, 100 * q)])

    def walk(kind):
        own, so_far = ca.SX.sym("w"), ca.SX.sym("s")
        total = so_far + own
        return ca.Function("walk", [own, so_far], [total, total, -total])

    described = Scan(
        parents, ["k"] * n, {}, {"w": 1, "sums": 2}, {"q": range(n)},
        [
            Pass("start", OUTWARD, start, inputs=["q"], writes=["w", "sums"]),
            Pass("walk", scan.ROOTWARD, walk, own=["w"], carried=["so_far"], begin={"so_far": "sums"},
                 outputs=["row", "column"]),
        ],
        views={"row": scan.View("A", range(n), walk=n),
               "column": scan.View("B", range(0, 2 * n * n, 2 * n), stride=2 * n, walk=1)},
        blank=["A", "B"], carried={"so_far": 1}, walkers=[(i, k, 2 * i + k) for i in range(n) for k in range(2)],
    )  # fmt: skip
    outputs = [("A", (2 * n, n)), ("B", (n, 2 * n))]
    A, B = scan.build("walks", [("q", n)], outputs, described, "walks", dtype=dtype)(w.astype(dtype))
    wanted = np.zeros((2 * n, n))
    for i in range(n):
        for k in range(2):
            total, j = 100 * w[i] * k, i
            while j >= 0:
                total += w[j]
                wanted[2 * i + k, j] = total
                j = parents[j]
    np.testing.assert_allclose(A, wanted, atol=tolerance * np.abs(wanted).max())
    np.testing.assert_allclose(B, -wanted.T, atol=tolerance * np.abs(wanted).max())


def test_nodes_that_share_a_part_of_an_output_add_up_in_it():
    """y[k] = Σ 2 q_i over the nodes of slot k; a walker of each node adds its own q to (slot, slot of the ancestor)."""
    parents, slots = [-1, 0, 1, 1], [0, 1, 0, 1]

    def keep(kind):
        q = ca.SX.sym("q")
        return ca.Function("keep", [q], [q, 2 * q])

    def walk(kind):
        carried = ca.SX.sym("carried")
        return ca.Function("walk", [carried], [carried, carried])

    described = Scan(
        parents, ["k"] * 4, {}, {"own": 1}, {"q": range(4), "y": slots},
        [
            Pass("keep", OUTWARD, keep, inputs=["q"], writes=["own"], outputs=["y"]),
            Pass("walk", scan.ROOTWARD, walk, carried=["carried"], begin={"carried": "own"}, outputs=["row"]),
        ],
        views={"row": scan.View("A", slots, walk=2)}, blank=["A", "y"], carried={"carried": 1},
        walkers=[(i, 0, slots[i]) for i in range(4)], shared=["y", "row"], results={"y": "q"},
    )  # fmt: skip
    kernel = scan.build("sums", [("q", 4)], [("y", (2,)), ("A", (2, 2))], described, "sums")
    assert [name for name, _ in kernel.outputs] == ["q", "A"]
    q = np.array([1.0, 10.0, 100.0, 1000.0])
    y, A = kernel(q)
    np.testing.assert_array_equal(y, [202.0, 2020.0])
    np.testing.assert_array_equal(A, [[1 + 100 + 100, 100], [10 + 1000, 10 + 1000 + 1000]])


def test_fields_of_passes_that_do_not_meet_share_memory():
    """Three fields of ten numbers, each needed between two passes only: a record has room for two of them."""

    def copy(kind):
        x = ca.SX.sym("x", 10)
        return ca.Function("copy", [x], [x + 1])

    names = ["a", "b", "c"]
    passes = [Pass("in", OUTWARD, copy, inputs=["q"], writes=["a"])]
    passes += [Pass(to, OUTWARD, copy, own=[of], writes=[to]) for of, to in pairwise(names)]
    passes += [Pass("out", OUTWARD, copy, own=["c"], outputs=["y"])]
    described = Scan([-1], ["k"], {}, dict.fromkeys(names, 10), {"q": [0], "y": [0]}, passes)
    kernel = scan.build("copies", [("q", 10)], [("y", (10,))], described, "copies")
    np.testing.assert_allclose(kernel(np.arange(10.0)), np.arange(10.0) + 4)
    assert kernel._form.scratch_bytes < 8 * kernel.lanes * (30 + 20)


def test_many_states_are_computed_two_registers_wide_with_avx_and_give_the_same_bits(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "optimised")
    target = without_avx512(host())
    if not target.folds_whole_vectors:
        pytest.skip("a processor without AVX")
    x, total = ca.SX.sym("x"), ca.SX.sym("s")
    step = ca.Function("step", [x, total], [(after := ca.sin(x) + 0.3 * total), after])
    only = Pass("sum", OUTWARD, lambda _: step, inputs=["x"], parent=["sum"], writes=["sum"], outputs=["y"])
    sums = Scan(range(-1, 8), ["sum"] * 9, {}, {"sum": 1}, {"x": range(9), "y": range(9)}, [only])
    kernel = scan.build("sums", [("x", 9)], [("y", (9,))], sums, "wide sums", target=target)
    x = np.random.default_rng(0).normal(size=(MANY + 5, 9))
    few = np.concatenate([kernel(x[k : k + 10]) for k in range(0, len(x), 10)])
    assert not isinstance(kernel._wide, Form)
    np.testing.assert_array_equal(kernel.batch(x), few)
    assert isinstance(kernel._wide, Form)
    assert kernel._wide.lanes == 2 * kernel.lanes


def tip_scan(parents, kinds):
    """below_i = x_i + Σ below of children; nodes of kind "cut" are not visited, so nothing comes from beyond them."""

    def step(kind):
        x, below = ca.SX.sym("x"), ca.SX.sym("b", 2)
        here = ca.vertcat(below[0] + x, below[1] * x + 1)
        return None if kind == "cut" else ca.Function("below", [x, below], [here, here])

    n = len(parents)
    places = {"x": range(n), "sums": range(0, 2 * n, 2)}
    below = Pass("below", INWARD, step, inputs=["x"], own=["below"], adds=["below"], outputs=["sums"])
    return Scan(parents, kinds, {}, {"below": 2}, places, [below], blank=["sums"])


@pytest.mark.parametrize("branched", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_fields_of_a_chain_that_only_neighbours_need_are_in_no_record(branched, cut):
    n, states = 9, 21
    parents, kinds = [*range(-1, n - 1)], ["sum"] * n
    if branched:
        parents[6] = 2
    if cut:
        kinds[5] = "cut"
    made = tip_scan(parents, kinds)
    plan = scan._plan(made, ["x"], ["sums"])
    assert (list(plan.alternating), list(plan.fields)) == ((["below"], []) if not branched else ([], ["below"]))
    x = np.random.default_rng(0).normal(size=(states, n))
    kernel = scan.build("tips", [("x", n)], [("sums", (n, 2))], made, f"tips {branched} {cut}")
    wanted, below = np.zeros((states, n, 2)), np.zeros((states, n + 1, 2))
    for i in reversed(range(n)):
        if kinds[i] != "cut":
            wanted[:, i, 0], wanted[:, i, 1] = below[:, i, 0] + x[:, i], below[:, i, 1] * x[:, i] + 1
            below[:, parents[i]] += wanted[:, i]
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-13)
    np.testing.assert_array_equal(kernel(x)[3], kernel(x[3]))


@pytest.mark.parametrize("branched", [False, True])
def test_fields_that_a_chain_hands_outwards_are_in_no_record_and_begin_at_the_root(branched):
    n, states = 8, 13
    parents = [*range(-1, n - 1)]
    if branched:
        parents[5] = 1

    def step(kind):
        x, before = ca.SX.sym("x"), ca.SX.sym("p", 2)
        here = ca.vertcat(before[1] + x, before[0] * 0.5)
        return ca.Function("path", [x, before], [here, here])

    places = {"x": range(n), "paths": range(0, 2 * n, 2)}
    path = Pass("path", OUTWARD, step, inputs=["x"], parent=["path"], writes=["path"], outputs=["paths"])
    made = Scan(parents, ["sum"] * n, {}, {"path": 2}, places, [path], root={"path": [10.0, 3.0]})
    assert bool(scan._plan(made, ["x"], ["paths"]).alternating) != branched
    x = np.random.default_rng(0).normal(size=(states, n))
    kernel = scan.build("paths", [("x", n)], [("paths", (n, 2))], made, f"paths {branched}")
    wanted = np.zeros((states, n, 2))
    for i, p in enumerate(parents):
        before = np.array([[10.0, 3.0]]) if p < 0 else wanted[:, p]
        wanted[:, i, 0], wanted[:, i, 1] = before[:, 1] + x[:, i], before[:, 0] * 0.5
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-13)
