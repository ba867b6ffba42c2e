"""Coordinate descent: fused steps against scikit-learn's and skglm's epochs, single queries, and a greedy step's sums.

An epoch is p steps; its cost is the difference between a long and a short run, so that neither side's set-up counts.
The peers neither clip nor add noise; ours go through a curator, with exact noise. CPU time, one thread each.
"""

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

from benchmarks.measures.timing import Timing, interleaved
from benchmarks.measures.timing_rows import Goal, Row, at_least, at_most
from benchmarks.sizes import size
from benchmarks.speed import sparse
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget, Neighbors
from discreet.curator import Curator, PrivateData
from discreet.curator.engines import DenseEngine, SparseEngine
from discreet.curator.lattice import on_weight_grid, weight_room, weight_scale
from discreet.curator.queries.gradients import CoordinateProgram, CoordinateQuery
from discreet.curator.records.admission import admit, scaling_for
from discreet.losses import Logistic, Squared
from discreet.penalties import L1, NoPenalty
from discreet.solvers import Geometry, GreedyCoordinateDescent

N, P = size(100_000, 1000), 100
DENSE, SPARSE = (5, 25), (2, 8)
"""Epochs of the two runs whose difference is timed; on sparse columns, nearly orthogonal, a peer soon converges."""
FEW, STEPS = 1000, size(2000, 50)
GREEDY = size(50, 5)
STRENGTH = 1e-7
"""Of the L1 penalty, everywhere: small, so that every coordinate moves in every epoch."""

Floats = NDArray[np.float64]


def run(rounds: int) -> Iterator[Row]:
    with threadpool_limits(1):
        X, y = correlated(N, P)
        yield from dense_epochs(X, y, rounds)
        yield greedy_sums(X, y, rounds)
        yield from sparse_epochs(rounds)
        yield fused_steps(rounds)
        yield greedy_steps(rounds)


def correlated(n: int, p: int) -> tuple[Floats, Floats]:
    """Features in [-1, 1] that share three factors: on independent ones a peer would converge, and then idle."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.25, 0.25, (n, p)) + rng.uniform(-0.25, 0.25, (n, 3)) @ rng.uniform(-1, 1, (3, p))
    y = np.where(rng.uniform(-0.5, 0.5, n) < X @ rng.normal(size=p) / np.sqrt(p), 1.0, -1.0)
    return X, y


def curator_for(X: Floats | csr_array, y: Floats, loss: object) -> Curator:
    """A curator whose plan of single coordinates is long enough never to run out, with noise of multiplier 1."""
    n, p = X.shape
    records = admit(X, y, scaling_for(Bounds(features=1.0), p, None, intercept=False))
    engine = DenseEngine(records, threads=1) if records.sparse is None else SparseEngine(records, threads=1)
    return Curator(
        engine,
        Domain(np.ones(p), float(np.sqrt(p)), n, Neighbors.REPLACE_ONE, intercept=False),
        loss,
        priced=price_plan(Plan((Release("noisy_coordinate_gradient", 10**7),)), Budget(5e6, 1e-6)),
        facts={"unit": "record"},
    )


def our_epochs(X: Floats | csr_array, y: Floats, loss: object, epochs: int) -> Callable[[], object]:
    """Cyclic steps, as the peers'; a step size of 1 / M_j and a clip of the columns' own size."""
    n, p = X.shape
    curator, order = curator_for(X, y, loss), np.tile(np.arange(p), epochs)
    squares = np.asarray((X * X).mean(axis=0)).ravel()
    clips, steps = np.sqrt(squares), 1.0 / squares
    return lambda: curator.noisy_coordinate_steps(
        np.zeros(p), order, clips=clips, steps=steps, penalty=L1(STRENGTH), n=n
    )


def lasso_epochs(X: object, y: Floats, epochs: int) -> Callable[[], object]:
    model = Lasso(STRENGTH, fit_intercept=False, precompute=False, copy_X=False, max_iter=epochs, tol=1e-30)

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        assert model.n_iter_ == epochs, "it converged, and idled in the last epochs"

    return fit


def skglm_epochs(X: Floats, y: Floats, epochs: int) -> Callable[[], object]:
    """The inner loop of skglm's coordinate descent on all features, without its working sets and acceleration."""
    from skglm import datafits, penalties
    from skglm.solvers.anderson_cd import _cd_epoch
    from skglm.utils.jit_compilation import compiled_clone

    datafit, penalty = compiled_clone(datafits.Logistic()), compiled_clone(penalties.L1(STRENGTH))
    smoothness, all_features = datafit.get_lipschitz(X, y), np.arange(X.shape[1])

    def some() -> None:
        w, margins = np.zeros(X.shape[1]), np.zeros(len(y))
        for _ in range(epochs):
            _cd_epoch(X, y, w, margins, smoothness, datafit, penalty, all_features)

    return some


def an_epoch(taken: dict[str, Timing], name: str, epochs: tuple[int, int] = DENSE) -> Timing:
    """The difference between the long and the short run, for one epoch; spread is the long run's."""
    long, short, more = taken[f"{name} long"], taken[f"{name} short"], epochs[1] - epochs[0]
    wall = (long.wall - short.wall) / more
    return Timing(wall, (long.cpu - short.cpu) / more, wall * long.spread)


def long_and_short(
    name: str, make: Callable[[int], Callable[[], object]], epochs: tuple[int, int] = DENSE
) -> dict[str, Callable[[], object]]:
    return {f"{name} short": make(epochs[0]), f"{name} long": make(epochs[1])}


def dense_epochs(X: Floats, y: Floats, rounds: int) -> Iterator[Row]:
    columns = np.asfortranarray(X)
    candidates = {
        **long_and_short("squared", lambda epochs: our_epochs(X, y, Squared(), epochs)),
        **long_and_short("lasso", lambda epochs: lasso_epochs(columns, y, epochs)),
    }
    taken = interleaved(candidates, rounds=rounds)
    title = f"coordinate epoch, n={N:.0e}, p={P}"
    ours, peer = an_epoch(taken, "squared"), an_epoch(taken, "lasso")
    yield Row.faster(f"{title}, squared, against scikit-learn's Lasso", ours, peer, at_most(1.2), clock="cpu")
    yield logistic_epoch(title, X, columns, y, max(3, rounds // 3))


def logistic_epoch(title: str, X: Floats, columns: Floats, y: Floats, rounds: int) -> Row:
    """Fewer rounds: skglm takes seconds for one."""
    title, goal = f"{title}, logistic, speed-up over skglm", at_least(5)
    candidates = long_and_short("ours", lambda epochs: our_epochs(X, y, Logistic(), epochs))
    if find_spec("skglm") is None:
        ours = an_epoch(interleaved(candidates, rounds=rounds), "ours")
        return missing(title, ours, goal, "skglm")
    candidates |= long_and_short("peer", lambda epochs: skglm_epochs(columns, y, epochs))
    taken = interleaved(candidates, rounds=rounds)
    return Row.speed_up(title, an_epoch(taken, "ours"), an_epoch(taken, "peer"), goal, clock="cpu")


def missing(title: str, ours: Timing, goal: Goal, package: str) -> Row:
    note = f"not installed: pip install {package}"
    return Row(title, "ms", 1e3 * ours.cpu, goal=goal, spread=ours.spread, note=note)


def greedy_sums(X: Floats, y: Floats, rounds: int) -> Row:
    """All columns' clipped sums, margins included, on the lattice that a greedy selection uses."""
    n, p = X.shape
    engine = DenseEngine(admit(X, y, scaling_for(Bounds(features=1.0), p, None, intercept=False)), threads=1)
    grid, rng = engine.grid, np.random.default_rng(1)
    bound = min(1 << 40, (1 << 61) // n)
    w, d = on_weight_grid(rng.normal(size=p) / np.sqrt(p), grid), rng.normal(size=n)
    scales, bounds = np.full(p, bound / (0.2 * grid.one)), np.full(p, bound)
    margin_scale = 1.0 / (weight_scale(grid) * grid.one)
    query = CoordinateQuery(w, Logistic(), np.arange(p), scales, bounds, margin_scale)
    candidates = {"ours": lambda: query.over(engine), "peer": lambda: X.T @ d}
    taken = interleaved(candidates, rounds=4 * rounds)
    title = f"a greedy step's sums, n={n:.0e}, p={p}, logistic, against one gemv"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(1.3), clock="cpu")


def sparse_epochs(rounds: int) -> Iterator[Row]:
    """The engine's program on noise drawn before, as a column is short; and the curator's, which draws it."""
    X, rng = sparse.matrix(), np.random.default_rng(1)
    y = rng.choice([-1.0, 1.0], X.shape[0])
    columns = X.tocsc()
    columns.indptr, columns.indices = columns.indptr.astype(np.int32), columns.indices.astype(np.int32)
    candidates = {
        **long_and_short("engine", lambda epochs: engine_epochs(X, y, epochs), SPARSE),
        **long_and_short("curator", lambda epochs: our_epochs(X, y, Squared(), epochs), SPARSE),
        **long_and_short("lasso", lambda epochs: lasso_epochs(columns, y, epochs), SPARSE),
    }
    taken = interleaved(candidates, rounds=max(5, rounds // 2))
    title = f"sparse coordinate epoch, n={X.shape[0]:.0e}, p={X.shape[1]:.0e}, 1 %, squared"
    peer = an_epoch(taken, "lasso", SPARSE)
    for name, goal, what in (("engine", at_most(1.2), "noise given"), ("curator", None, "noise drawn")):
        ours = an_epoch(taken, name, SPARSE)
        yield Row.faster(f"{title}, {what}, against scikit-learn's Lasso", ours, peer, goal, clock="cpu")


def engine_epochs(X: csr_array, y: Floats, epochs: int) -> Callable[[], object]:
    """What the curator asks of the engine."""
    n, p = X.shape
    engine = SparseEngine(admit(X, y, scaling_for(Bounds(features=1.0), p, None, intercept=False)), threads=1)
    grid, bound, squares = engine.grid, 1 << 40, np.asarray((X * X).mean(axis=0)).ravel()
    clips, scale = np.sqrt(squares), weight_scale(engine.grid)
    order = np.tile(np.arange(p), epochs)
    program = CoordinateProgram(
        w=np.zeros(p),
        loss=Squared(),
        penalty=L1(STRENGTH),
        coordinates=order,
        noise=np.rint(np.random.default_rng(3).normal(size=order.size) * 2 * bound).astype(np.int64),
        scales=bound / (clips * grid.one),
        bound=bound,
        units=clips / bound,
        n=float(n),
        steps=1.0 / squares,
        margin_scale=1.0 / (scale * grid.one),
        to_grid=scale,
        room=weight_room(grid),
    )
    return lambda: program.over(engine)


def fused_steps(rounds: int) -> Row:
    """One program against a loop of single answers, each with its own update of the weights."""
    X, y = correlated(FEW, P)
    curator, order = curator_for(X, y, Logistic()), np.random.default_rng(2).integers(0, P, STEPS)
    squares = (X * X).mean(axis=0)
    clips, steps, penalty = np.sqrt(squares), 1.0 / squares, L1(STRENGTH)

    def fused() -> None:
        curator.noisy_coordinate_steps(np.zeros(P), order, clips=clips, steps=steps, penalty=penalty, n=FEW)

    def single() -> None:
        w = np.zeros(P)
        for j in order.tolist():
            gradient = curator.noisy_coordinate_gradient(w, j, clips=clips[j])[0] / FEW
            moved = w[j] - steps[j] * gradient
            w[j] = np.sign(moved) * max(abs(moved) - steps[j] * STRENGTH, 0.0)

    taken = interleaved({"ours": fused, "peer": single}, rounds=rounds)
    title = f"{STEPS} coordinate steps, n={FEW}, p={P}, logistic, speed-up of a program over single answers"
    return Row.speed_up(title, taken["ours"], taken["peer"], at_least(5), clock="cpu")


def greedy_steps(rounds: int) -> Row:
    """A run of the poster's algorithm with its own noise, against the same in plain numpy, whose noise is no secret."""
    X, y = correlated(FEW, P)
    budget, clip, size = Budget(1.0, 1e-6), 1.0 / np.sqrt(P), 0.25
    data = PrivateData(X, (y > 0).astype(int), Bounds(features=1.0, classes=(0, 1)), fit_intercept=False)
    solver = GreedyCoordinateDescent(GREEDY, Geometry(clip=1.0), rule="gs", calibration="paper")
    priced = price_plan(solver.plan(data.domain(budget.neighbors, Logistic()), Logistic(), NoPenalty()), budget)
    scale = 2.0 * clip * priced.noise_multiplier / FEW

    def plain() -> None:
        rng, w = np.random.default_rng(), np.zeros(P)
        for _ in range(GREEDY):
            slopes = -y / (1.0 + np.exp(y * (X @ w)))
            gradient = np.clip(X * slopes[:, None], -clip, clip).sum(axis=0) / FEW
            j = int(np.argmax(np.abs(gradient + rng.laplace(0.0, scale, P))))
            w[j] -= (gradient[j] + rng.laplace(0.0, scale)) / size

    taken = interleaved(
        {"ours": lambda: solver.solve(data.open(priced, Logistic()), NoPenalty()), "peer": plain}, rounds=rounds
    )
    title = f"{GREEDY} greedy steps, n={FEW}, p={P}, logistic, against plain numpy"
    return Row.faster(title, taken["ours"], taken["peer"], None, clock="cpu")
