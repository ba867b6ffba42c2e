"""Compiled kernels are compared with their own source, and samplers with known draws, before they see a record."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData, kernels, known_answers, known_draws
from discreet.curator.kernels import gradients, moments
from discreet.curator.kernels.kernel import Kernel, _interpreted, plain_python
from discreet.curator.lattice import COARSE, FINE
from discreet.curator.noise import chacha20_words
from discreet.errors import StaleKernels
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import L1

GAUSSIAN, PURE = Budget(1.0, 1e-6), Budget(1.0, 0.0)
FULL, SAMPLED = Release("noisy_gradient", 2, clip=1.0), Release("noisy_gradient", 2, 0.25, clip=1.0)
LOSSES = (Logistic(), Squared(), Huber(0.5), SmoothedHinge(0.5), Poisson(5.0), Softmax(3))
KERNELS = {
    f"{module.name}.{name}": item
    for module in iter_modules(kernels.__path__)
    for name, item in vars(import_module(f"{kernels.__name__}.{module.name}")).items()
    if isinstance(item, Kernel) and item.__module__.endswith(f".{module.name}")
}
NEVER_STALE = {  # what they call is in their own file, whose edits numba sees, and tests compare them with integers
    "encode.encode_rows",
    "encode.encode_sparse_rows",
    "hashes.dense_hashes",
    "hashes.sparse_hashes",
    "kernel.turn_to_rows",
    # for directions of Newton's steps, which no certificate rests on
    "float_sums.add_pairs",
    "float_sums.curvatures",
    "float_sums.probabilities",
    "float_sums.product_over_sparse",
    "float_sums.product_over_tiles",
    "float_sums.scale_tile",
}


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """As in a process that has checked nothing yet."""
    monkeypatch.setattr(known_answers, "_passed", set())


def opened(release, budget):
    data = PrivateData(np.ones((5, 2)), [0, 1, 0, 1, 1], Bounds(1.0, classes=(0, 1)), ledger=False)
    return data.open(price_plan(Plan([release]), budget), Logistic())


def plant(monkeypatch, kernel):
    """Make compiled code that is off: in what it returns, or in the last array that it is given to fill."""
    honest = kernel.compiled

    def stale(*args):
        returned = honest(*args)
        if returned is not None:
            return returned + 1
        filled = [arg for arg in args if isinstance(arg, np.ndarray)][-1]
        filled += 1 if filled.dtype.kind == "i" else 1 + filled
        return None

    monkeypatch.setattr(kernel, "compiled", stale)


def check_all(loss, *, sparse):
    for sampled in (False, True):
        known_answers.check_kernels(loss, sparse=sparse, sampled=sampled)
    known_answers.check_change_kernels(loss, sparse=sparse)
    known_answers.check_value_kernels(loss, sparse=sparse)
    known_answers.check_recoding_kernels(sparse=sparse)
    for moment in ("mean", "squares", "outer"):
        known_answers.check_moment_kernels(moment=moment, sparse=sparse)
    known_answers.check_count_kernel()
    known_answers.check_magnitude_kernel()
    known_answers.check_smooth(loss, sparse=sparse, grid=COARSE)
    if loss.n_outputs == 1:
        known_answers.check_coordinate_kernels(loss, L1(0.01), sparse=sparse)
        known_answers.check_share_sums(loss, sparse=sparse)
    if not sparse:
        known_answers.check_effect_kernels(loss)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_kernels_as_they_are_agree_with_their_source(loss, sparse):
    check_all(loss, sparse=sparse)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=lambda loss: type(loss).__name__)
def test_fine_grids_have_known_answers(loss):
    for sparse in (False, True):
        known_answers.check_smooth(loss, sparse=sparse, grid=FINE)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - NEVER_STALE))
def test_a_stale_kernel_is_found(monkeypatch, name):
    plant(monkeypatch, KERNELS[name])

    def check_everything():
        for loss in (Logistic(), Softmax(3)):
            for sparse in (False, True):
                check_all(loss, sparse=sparse)

    with pytest.raises(StaleKernels, match="disagrees with its source"):
        check_everything()


def test_the_source_runs_in_its_own_context_alone():
    kernel, out = moments.row_sums, np.zeros(2, dtype=np.int64)
    with plain_python():
        kernel(np.array([[1, 2]], dtype=np.int16), np.array([3]), out)
    kernel(np.array([[1, 2]], dtype=np.int16), np.array([3]), out)
    assert out.tolist() == [6, 12]


HONEST = gradients.gradient_over_tiles.py_func.__globals__["derivative"]
EDITS = {
    "everywhere": lambda loss, m, t: 0.25,
    "of large margins": lambda loss, m, t: HONEST(loss, m, t) * (abs(m) < 12.0),  # as limits of counts are
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_code_compiled_against_another_file_is_found(monkeypatch, edit):
    """As after an edit of a loss, which numba's cache of the kernel does not see."""
    known_answers.check_kernels(Logistic(), sparse=False, sampled=False)
    known_answers._passed.clear()
    monkeypatch.setitem(gradients.gradient_over_tiles.py_func.__globals__, "derivative", edit)
    _interpreted.cache_clear()
    try:
        with pytest.raises(StaleKernels):
            known_answers.check_kernels(Logistic(), sparse=False, sampled=False)
    finally:
        _interpreted.cache_clear()


ASKED = {
    "coordinates": (
        gradients.coordinate_sums,
        "noisy_coordinate_gradient",
        lambda curator: curator.noisy_coordinate_gradient(np.zeros(3), 0, clips=1.0),
    ),
    "squares": (moments.square_sums, "noisy_squared_norms", lambda curator: curator.noisy_squared_norms(clip=1.0)),
    "scores": (gradients.values_over_tiles, "noisy_score", lambda curator: curator.noisy_score(np.zeros(3))),
    "curvature": (
        gradients.curvature_coefficients,
        "noisy_curvature",
        lambda curator: curator.noisy_curvature(np.zeros(3), clip=1.0, reach=1.0),
    ),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_stale_sum_is_asked_nothing_and_costs_nothing(monkeypatch, asked):
    kernel, query, ask = ASKED[asked]
    curator = opened(Release(query, 1), GAUSSIAN)
    with monkeypatch.context() as patch:
        plant(patch, kernel)
        with pytest.raises(StaleKernels, match="disagrees with its source"):
            ask(curator)
    ask(curator)  # nothing was spent


@pytest.mark.parametrize(
    ("kernel", "broken", "other"),
    [(gradients.gradient_over_batch, SAMPLED, FULL), (gradients.gradient_over_tiles, FULL, None)],
    ids=["sampled", "full"],
)
def test_a_stale_sum_stops_the_plans_that_use_it(monkeypatch, kernel, broken, other):
    plant(monkeypatch, kernel)
    with pytest.raises(StaleKernels, match="disagrees with its source"):
        opened(broken, GAUSSIAN)
    if other is not None:
        opened(other, GAUSSIAN)


def off_by_one(monkeypatch, name):
    honest = getattr(known_draws, name)
    monkeypatch.setattr(known_draws, name, lambda *args: honest(*args) + 1)


@pytest.mark.parametrize(
    ("sampler", "broken", "other"),
    [("rounded_gaussian", GAUSSIAN, PURE), ("discrete_laplace", PURE, GAUSSIAN)],
    ids=["gaussian", "laplace"],
)
def test_a_stale_sampler_stops_the_budgets_that_use_it(monkeypatch, sampler, broken, other):
    off_by_one(monkeypatch, sampler)
    with pytest.raises(StaleKernels, match="sampler fails its known answers"):
        opened(FULL, broken)
    opened(FULL, other)


@pytest.mark.parametrize("mechanism", ["laplace", "noisy_max", "exponential"])
def test_what_is_not_additive_checks_the_laplace_sampler_too(monkeypatch, mechanism):
    off_by_one(monkeypatch, "discrete_laplace")
    plan = Plan([FULL, Release("select_coordinate", 1, mechanism=mechanism)])
    with pytest.raises(StaleKernels, match="Laplace"):
        known_draws.check_planned(plan, Logistic(), pure=False, sparse=False)


def test_a_stale_sampler_of_records_stops_plans_that_sample(monkeypatch):
    off_by_one(monkeypatch, "poisson_sample")
    with pytest.raises(StaleKernels, match="sampler of records fails its known answers"):
        opened(SAMPLED, GAUSSIAN)
    opened(FULL, GAUSSIAN)


def test_the_kernels_as_they_are_pass():
    opened(SAMPLED, GAUSSIAN)
    opened(FULL, PURE)


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_a_stale_cipher_stops_every_plan(monkeypatch, budget):
    def later(key, count, **words):
        """The published stream from its second block on."""
        return chacha20_words(key, count, **{**words, "first": words.get("first", 0) + 1})

    monkeypatch.setattr(known_draws, "chacha20_words", later)
    with pytest.raises(StaleKernels, match="cipher fails its known answers"):
        opened(FULL, budget)
