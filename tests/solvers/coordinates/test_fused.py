"""A fused program of steps is the loop of single queries, bit for bit, and its mean is that of the iterates."""

import itertools

import numpy as np
import pytest

from discreet import Budget
from discreet.curator.lattice import COARSE, weight_scale
from discreet.losses import Squared
from discreet.penalties import L1, L2, Box, ElasticNet, NoPenalty
from discreet.penalties.base import prox_coordinate
from discreet.solvers import CoordinateDescent, Geometry
from discreet.solvers.base import UNWATCHED, Watched
from tests.covering import covering
from tests.replaying import window
from tests.solvers.coordinates.tables import LOSSES, csr, drawn, gradients, one_stream, opened

PENALTIES = (NoPenalty(), L1(0.02), L2(0.1), ElasticNet(0.01, 0.1), Box(-0.25, 0.1))
GRID = weight_scale(COARSE)
STEPS = 60


def by_single_queries(curator, w, columns, clips, steps, penalty, n):
    """The loop, written out: the iterates after each step."""
    w, iterates = w.copy(), []
    for j in columns.tolist():
        g = float(curator.noisy_coordinate_gradient(w, [j], clips=clips[[j]])[0]) / n
        w[j] = np.rint(prox_coordinate(penalty, w[j] - steps[j] * g, steps[j], j) * GRID) / GRID
        iterates.append(w.copy())
    return np.array(iterates)


def program(p, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, p, STEPS)
    return columns, rng.uniform(0.05, 0.6, p), rng.uniform(0.3, 2.0, p)


@pytest.mark.few(2)
@covering(
    (
        ("name", "penalty"),
        [*itertools.product(["squared"], PENALTIES), *((name, PENALTIES[k]) for k, name in enumerate(LOSSES) if k)],
    ),
    ("sparse", [False, True]),
    ("groups", [False, True]),
)
def test_fused_is_the_loop(name, penalty, sparse, groups):
    loss = LOSSES[name]
    X, y = drawn(loss, 300, 5)
    person = np.arange(300) // 3 if groups else None
    n = 100.0 if groups else 300.0
    columns, clips, steps = program(6)
    start = np.rint(np.linspace(-0.2, 0.2, 6) * GRID) / GRID
    budget = Budget(2.0, 1e-5, "zero_out")
    table = csr(X) if sparse else X

    def curator():
        return opened(table, y, loss, gradients(STEPS), budget=budget, groups=person, intercept=True)

    with one_stream():
        fused = curator().noisy_coordinate_steps(start, columns, clips=clips, steps=steps, penalty=penalty, n=n)
    with one_stream(), window() as observed:
        looked = curator().noisy_coordinate_steps(start, columns, clips=clips, steps=steps, penalty=penalty, n=n)
    with one_stream():
        iterates = by_single_queries(curator(), start, columns, clips, steps, penalty, n)
    with one_stream(), window() as single:
        by_single_queries(curator(), start, columns, clips, steps, penalty, n)
    assert fused.last.tobytes() == looked.last.tobytes()
    assert fused.mean.tobytes() == looked.mean.tobytes()
    assert fused.last.tolist() == iterates[-1].tolist()
    np.testing.assert_allclose(fused.mean, iterates.mean(axis=0), rtol=1e-12, atol=1e-15)
    assert [int(m.exact[0]) for m in observed] == [int(m.exact[0]) for m in single]
    assert [m.unit.bound for m in observed] == [m.unit.bound for m in single]
    assert np.ptp(iterates, axis=0).max() > 1e-4, "nothing moved: the comparison is void"


def test_weights_at_the_edge_of_the_grid():
    """Steps that would leave the room for exact margins stop at its edge, alike in both ways."""
    X, y = drawn(Squared(), 50, 4)
    columns, clips = np.array([0, 1, 2, 3, 0, 1, 2, 3]), np.ones(4)
    runs = []
    for table, look in itertools.product((X, csr(X)), (False, True)):
        curator = opened(table, y, Squared(), gradients(100))
        arguments = {"clips": clips, "steps": np.full(4, 1e9), "penalty": NoPenalty(), "n": 50}
        if look:
            with window():
                runs.append(curator.noisy_coordinate_steps(np.zeros(4), columns, **arguments))
        else:
            runs.append(curator.noisy_coordinate_steps(np.zeros(4), columns, **arguments))
    assert len({run.last.tobytes() + run.mean.tobytes() for run in runs}) == 1
    assert np.abs(runs[0].last).sum() * GRID * 2**14 < 2**53


@covering(("inner", [1, 2, 3, 50]), ("progress", [UNWATCHED, Watched(lambda done, total: None)]))
def test_the_mean_is_of_the_iterates_after_each_step(inner, progress):
    """K = 1 gives theta^1, K = 2 gives (theta^1 + theta^2) / 2."""
    X, y = drawn(Squared(), 80, 3)
    n, clip = 80, 10.0
    solver = CoordinateDescent(n_inner=inner, geometry=Geometry(clip=clip), relative_step=0.7)
    curator = opened(X, y, Squared(), gradients(inner))
    visited = spied(curator)
    solved = solver.solve(curator, L2(0.05), progress).coefficients
    w, iterates = np.zeros(3), []
    rows = np.rint(X * 2**14) / 2**14
    for j in visited:
        g = float(rows[:, j] @ (rows @ w - y)) / n
        w[j] = (w[j] - 0.7 * g) / (1 + 0.7 * 0.05)
        iterates.append(w.copy())
    assert len(iterates) == inner
    np.testing.assert_allclose(solved, np.mean(iterates, axis=0), atol=1e-6)
    last = CoordinateDescent(n_inner=inner, geometry=Geometry(clip=clip), average="last")
    assert last.solve(opened(X, y, Squared(), gradients(inner)), L2(0.05)).coefficients.shape == (3,)


def spied(curator):
    """The coordinates that a solver asks for, in order."""
    visited, honest = [], curator.noisy_coordinate_steps

    def steps(w, coordinates, **settings):
        visited.extend(np.atleast_1d(coordinates).tolist())
        return honest(w, coordinates, **settings)

    curator.noisy_coordinate_steps = steps
    return visited


@covering(("p", [1, 3, 8]), ("progress", [UNWATCHED, Watched(lambda done, total: None)]))
def test_cyclic_passes_visit_every_coordinate_once(p, progress):
    """Whether or not somebody watches the progress."""
    X, y = drawn(Squared(), 30, p)
    curator = opened(X, y, Squared(), gradients())
    visited = spied(curator)
    CoordinateDescent(n_inner=5 * p, schedule="cyclic", geometry=Geometry(clip=1.0)).solve(
        curator, NoPenalty(), progress
    )
    passes = np.array(visited).reshape(5, p)
    assert (np.sort(passes, axis=1) == np.arange(p)).all()
