"""Bugs planted in moments and recodings: each must be caught by a check that honest code passes."""

import inspect
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.curator import curator as curator_module
from discreet.curator.engines.base import coefficient_limits
from discreet.curator.kernels import moments as kernels
from discreet.curator.known_answers import check_moment_kernels, check_recoding_kernels
from discreet.curator.queries import moments
from discreet.curator.records import recoding as recoding_module
from discreet.curator.records.recoding import Recoding
from discreet.curator.session import Session
from discreet.errors import StaleKernels
from discreet.testing import fresh_noise, neighbor_pairs, replay
from tests.curator.queries import test_moments
from tests.curator.records import test_recoding
from tests.solvers.perturbation.cases import bounds_of, fit_of, table
from tests.solvers.whitened import test_price, test_sensitivity
from tests.solvers.whitened.cases import MOMENTS, contribution, descent, opened, ratio_squared

SOLVERS = {"full": descent("full", n_steps=3)}


@pytest.fixture(autouse=True, scope="module")
def _checked_kernels():
    """The self-test would find some of these bugs on its first run: it is to have had that."""
    for sparse in (False, True):
        check_recoding_kernels(sparse=sparse)
        for moment in ("mean", "squares", "outer"):
            check_moment_kernels(moment=moment, sparse=sparse)


def findings(kind="full", name="logistic", relation="replace_one", groups=False, words="high"):
    """What replay finds, over pairs whose name has one of the words."""
    fit = fit_of(name, SOLVERS[kind], relation)
    pairs = neighbor_pairs(*table(name, "dense", groups), relation=relation, bounds=bounds_of(name))
    found = [replay(fit, pair.data, pair.neighbor, relation) for pair in pairs if words in pair.name]
    return {finding.kind for report in found for finding in report.findings}


def test_honest_code_passes():
    for kind, name in (("full", "logistic"), ("full", "ridge")):
        assert not findings(kind, name)
    assert not findings("full", groups=True, words="rows high")
    assert fresh_noise(fit_of("ridge", SOLVERS["full"], "zero_out"), table("ridge")).ok


@pytest.mark.parametrize("query", ["noisy_second_moment", "noisy_mean_squares"])
def test_the_root_of_two_forgotten(monkeypatch, query):
    monkeypatch.setattr(moments, "ROOT_TWO", Fraction(1))
    assert test_sensitivity.searched(query, "dense", "replace_one", False) > 1
    with pytest.raises(AssertionError):
        test_sensitivity.test_the_factor_is_that_of_the_docstring(query, "replace_one")


def test_the_root_of_two_for_means(monkeypatch):
    """Rows have opposites: for their sum it would be too little."""
    honest = Session.unit
    monkeypatch.setattr(Session, "unit", lambda self, r, clip, factor=None: honest(self, r, clip, 1))
    monkeypatch.setattr(Session, "factor", property(lambda self: Fraction(1_414_213_563, 1_000_000_000)))
    assert test_sensitivity.searched("noisy_mean", "dense", "replace_one", False) > 1


def test_outer_products_that_are_not_clipped(monkeypatch):
    monkeypatch.setattr(moments, "outer_coefficients", lambda engine, query: moments._most(engine, query.scale))
    vector, measurement = contribution("noisy_second_moment", np.ones(3))
    assert ratio_squared(vector, [0] * 9, measurement) > 100
    with pytest.raises(AssertionError):
        test_sensitivity.searched("noisy_second_moment", "dense", "zero_out", False)


def _mutant(monkeypatch, change):
    """Run changed source, in plain Python, where the compiled kernel of outer products would."""
    space = dict(vars(kernels))
    source = "".join(
        inspect.getsource(kernel.py_func) for kernel in (kernels._add_products, kernels.add_outer_products)
    )
    source = re.sub(r"^@(njit|kernel).*$", "", source, flags=re.MULTILINE)
    for old, new in change.items():
        assert old in source, "the kernel has changed: so must this bug"
        source = source.replace(old, new)
    exec(source, space)
    monkeypatch.setattr(kernels.add_outer_products, "compiled", space["add_outer_products"])


def _strips():
    for n, p in ((1, 1), (257, 3), (4097, 2)):
        test_moments.test_strips_of_any_number_of_rows_and_columns(n, p)


def _limits():
    test_moments.test_rows_at_the_largest_bound_over_many_blocks(3 * test_moments.BLOCK + 1)


MUTANTS = {
    "no flush": ({"since >= _FLUSH or ": ""}, _limits),
    "a flush too late": ({"since >= _FLUSH or ": "since >= 4 * _FLUSH or "}, _limits),
    "what was flushed counts again": ({"part[j, k] = 0.0": "pass"}, _strips),
    "no mirror": ({"out[j, k] = out[k, j]": "pass"}, _strips),
    "a mirror of the diagonal": ({"out[j, k] = out[k, j]": "out[j, k] = out[k, k]"}, _strips),
    "no diagonal": ({"for k in range(j, p):": "for k in range(j + 1, p):"}, _strips),
    "coefficients twice": ({" * float(coefficients[first + i])": " * float(coefficients[first + i]) ** 2"}, _strips),
    "coefficients forgotten": ({" * float(coefficients[first + i])": ""}, _strips),
    "rows of the last strip left in this one": ({"left[j, i] = 0.0": "pass"}, _strips),
    "a column for another": ({"s01 += a0[i] * b1[i]": "s01 += a0[i] * b0[i]"}, _strips),
    "a sum written over": ({"out[j, k] += s00": "out[j, k] = s00"}, _strips),
}


@pytest.mark.parametrize("bug", MUTANTS)
def test_outer_products_added_up_wrongly(monkeypatch, bug):
    change, check = MUTANTS[bug]
    _mutant(monkeypatch, change)
    with pytest.raises(AssertionError):
        check()


def test_the_kernel_in_plain_python_is_honest(monkeypatch):
    _mutant(monkeypatch, {})
    _strips()
    _limits()


@pytest.mark.parametrize("bug", ["no mirror", "no diagonal", "coefficients twice", "a column for another"])
def test_a_stale_kernel_is_found_before_it_answers(monkeypatch, bug):
    _mutant(monkeypatch, MUTANTS[bug][0])
    with pytest.raises(StaleKernels):
        check_moment_kernels.__wrapped__(moment="outer", sparse=False)


def test_recode_checks_its_kernels_itself(monkeypatch):
    def refuse(*, sparse):
        raise StaleKernels("stale")

    curator = opened(np.ones((4, 3)), np.ones(4), ["noisy_mean"])
    monkeypatch.setattr(curator_module, "check_recoding_kernels", refuse)
    with pytest.raises(StaleKernels):
        curator.recode(Recoding(np.zeros(3), np.ones(3)))


def test_outer_products_clipped_by_the_norm_and_not_its_square(monkeypatch):
    def coefficients(engine, query):
        records = engine.records
        limits = moments.unit_bounds(query.bound, records) // np.maximum(records.norms, 1)
        return np.minimum(moments._most(engine, query.scale), limits)

    monkeypatch.setattr(moments, "outer_coefficients", coefficients)
    with pytest.raises(AssertionError):
        test_sensitivity.searched("noisy_second_moment", "dense", "zero_out", False)
    with pytest.raises(AssertionError):
        test_moments.test_any_number_of_columns(3, 1 << 25, "outer")


def _planted_recode(monkeypatch, bug):
    """``Placement.of``, through which every recoded record goes, with a bug."""
    honest = recoding_module.Placement.of

    def planted(self, records, *, threads=None):
        def mapped(rows, recoding, admitted, *, numeric_target):
            return honest(replace(self, recoding=recoding, numeric_target=numeric_target), rows, threads=threads)

        return bug(mapped, records, self.recoding, None, self.numeric_target)

    monkeypatch.setattr(recoding_module.Placement, "of", planted)


def _at_the_exact_mean(honest, records, recoding, admitted, numeric):
    rows = records.rows[records.norms > 0, : len(recoding.center)]
    mean = rows.mean(axis=0) / records.grid.one if len(rows) else 0.0
    return honest(records, replace(recoding, center=mean + 0 * recoding.center), admitted, numeric_target=numeric)


def test_records_centered_at_their_own_mean(monkeypatch):
    _planted_recode(monkeypatch, _at_the_exact_mean)
    assert "sensitivity" in findings()
    for check in (
        test_recoding.test_a_record_alone_has_the_same_image,
        test_recoding.test_order_and_neighbors_do_not_matter,
    ):
        with pytest.raises(AssertionError):
            check("dense", test_recoding.a_map())


def _scaled_by_the_table(honest, records, recoding, admitted, numeric):
    longest = max(1.0, float(records.norms.max(initial=0)) / records.grid.one)
    return honest(records, replace(recoding, scale=recoding.scale * longest), admitted, numeric_target=numeric)


def test_a_scale_read_from_the_data(monkeypatch):
    _planted_recode(monkeypatch, _scaled_by_the_table)
    with pytest.raises(AssertionError):
        test_recoding.test_a_record_alone_has_the_same_image("dense", test_recoding.a_map())


def _null_like_any_other(honest, records, recoding, admitted, numeric):
    return honest(
        replace(records, norms=np.maximum(records.norms, 1)), recoding, admitted, numeric_target=numeric
    )  # fmt: skip


def test_null_records_sent_to_minus_the_center(monkeypatch):
    """Under zero_out a null record that is somewhere counts like two: one that leaves, one that comes."""
    _planted_recode(monkeypatch, _null_like_any_other)
    with pytest.raises(AssertionError):
        test_recoding.test_null_records_stay_null("dense", test_recoding.a_map())
    with pytest.raises(AssertionError):
        test_sensitivity.test_null_records_add_nothing("noisy_mean", "centered")
    assert "sensitivity" in findings(relation="zero_out", words="low")


def _from_an_earlier_recoding(honest, records, recoding, admitted, numeric, memory={}):  # noqa: B006
    """Recodes what it recoded last."""
    last = memory.get("last", records)
    if last.n_columns != records.n_columns or last.n_rows != records.n_rows:
        last = records
    memory["last"] = honest(last, recoding, admitted, numeric_target=numeric)
    return memory["last"]


def test_recodings_one_upon_the_other(monkeypatch):
    _planted_recode(monkeypatch, _from_an_earlier_recoding)
    with pytest.raises(AssertionError):
        test_recoding.test_each_recoding_starts_from_the_admitted_records()


@pytest.mark.parametrize("query", MOMENTS)
def test_a_person_counted_row_by_row(monkeypatch, query):
    monkeypatch.setattr(moments, "unit_bounds", lambda bound, records: np.full(records.n_rows, bound))
    monkeypatch.setattr(
        moments, "coefficient_limits", lambda reach, shares, bound: coefficient_limits(reach, None, bound)
    )
    with pytest.raises(AssertionError):
        test_sensitivity.searched(query, "persons", "zero_out", False)
    with pytest.raises(AssertionError):
        test_sensitivity.test_persons_with_many_rows_stay_within_the_bound(query)
    assert "sensitivity" in findings(groups=True, words="5 rows high")


def test_a_person_whose_targets_count_row_by_row(monkeypatch):
    monkeypatch.setattr(moments, "unit_bounds", lambda bound, records: np.full(records.n_rows, bound))
    with pytest.raises(AssertionError):
        test_sensitivity.test_targets_move_their_moments_up_to_the_bound("zero_out", True, False)


def test_a_row_shrunk_by_the_factor_of_the_row_before(monkeypatch):
    honest = recoding_module.recode_rows

    def recode_rows(*arguments):
        honest(*arguments)
        out, norms, sums, factors = arguments[-4:]
        moved = np.minimum(1.0, np.roll(factors, 1))
        out[:] = np.trunc(out * moved[:, None])
        norms[:] = np.ceil(np.sqrt(np.square(out.astype(np.int64)).sum(axis=1)))
        sums[:] = np.abs(out.astype(np.int64)).sum(axis=1)

    monkeypatch.setattr(recoding_module, "recode_rows", recode_rows)
    recoding = test_recoding.a_map(row_norm=0.8)
    for check in (
        test_recoding.test_a_record_alone_has_the_same_image,
        test_recoding.test_order_and_neighbors_do_not_matter,
    ):
        with pytest.raises(AssertionError):
            check("dense", recoding)


def test_a_target_shrunk_by_the_factor_of_another_row(monkeypatch):
    def bug(honest, records, recoding, admitted, numeric):
        made = honest(records, recoding, admitted, numeric_target=numeric)
        return replace(made, targets=np.roll(made.targets, 1))

    _planted_recode(monkeypatch, bug)
    with pytest.raises(AssertionError):
        test_recoding.test_numeric_targets_shrink_with_their_rows("dense")


def test_norms_of_the_rows_before_recoding(monkeypatch):
    """Clips would be made for other rows than those that are summed."""

    def bug(honest, records, recoding, admitted, numeric):
        return replace(honest(records, recoding, admitted, numeric_target=numeric), norms=records.norms)

    _planted_recode(monkeypatch, bug)
    with pytest.raises(AssertionError):
        test_recoding.test_norms_are_those_of_the_integers("dense", test_recoding.a_map())


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_one_noise_for_two_moments(monkeypatch, name):
    honest, kept = Session.noise, {}

    def noise(self, release, unit, count):
        if release.query not in ("noisy_mean", "noisy_mean_squares"):
            return honest(self, release, unit, count)
        return kept.setdefault((id(self), count), honest(self, release, unit, count))

    monkeypatch.setattr(Session, "noise", noise)
    assert not fresh_noise(fit_of(name, SOLVERS["full"], "zero_out"), table(name), runs=1).ok


def test_noise_mirrored_within_a_matrix(monkeypatch):
    """p (p + 1) / 2 draws for p^2 entries: half of the entries would be as noisy as they look together."""
    honest = Session.noise

    def noise(self, release, unit, count):
        drawn = honest(self, release, unit, count)
        if release.query == "noisy_second_moment":
            square = drawn.reshape(int(count**0.5), -1)
            drawn = (np.triu(square) + np.triu(square, 1).T).ravel()
        return drawn

    monkeypatch.setattr(Session, "noise", noise)
    assert not fresh_noise(fit_of("logistic", SOLVERS["full"], "zero_out"), table("logistic"), runs=1).ok


@pytest.mark.parametrize("kind", ["full", "full numbers"])
def test_the_relative_noise_of_moments_ignored(monkeypatch, kind):
    """Every moment with the noise of the whole budget."""
    honest = Session.multiplier

    def multiplier(self, release):
        return honest(self, release if release.query == "noisy_gradient" else replace(release, relative_noise=1.0))

    monkeypatch.setattr(Session, "multiplier", multiplier)
    with pytest.raises(AssertionError):
        test_price.test_noise_follows_the_relative_noise(kind, "zero_out")
    with pytest.raises(AssertionError):
        test_price.test_the_certificate_costs_the_whole_budget_and_not_more(kind, "zero_out", 1.0)
    assert "price" in findings("full", "logistic" if kind == "full" else "ridge")


def test_a_moment_asked_twice(monkeypatch):
    honest = moments.noisy_mean

    def twice(session, *, clip, n):
        session._next("noisy_mean").left += 1
        honest(session, clip=clip, n=n)
        return honest(session, clip=clip, n=n)

    monkeypatch.setattr(moments, "noisy_mean", twice)
    assert "price" in findings()
    with pytest.raises(AssertionError):
        test_price.test_every_planned_answer_is_asked_and_none_else("full", "zero_out", True)
