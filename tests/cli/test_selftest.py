import json

import numpy as np
import pytest

from discreet.curator import known_draws
from discreet.curator.known_draws import Check, entropy_check, law_check, poisson_check
from discreet.curator.noise import SystemEntropy, discrete_laplace, poisson_sample, rounded_gaussian
from discreet.models import compile as compiling

DRAWS = 50_000


@pytest.mark.thorough
def test_this_installation_passes(run):
    result = run("selftest", "--draws", DRAWS)
    assert result.exit_code == 0, result.output
    assert "checks passed" in result.stdout
    assert "FAIL" not in result.stdout


def test_what_fits_run_is_compiled_first_where_asked(run, monkeypatch):
    fits = {"gd": compiling.TWO_CLASSES["two classes, gd"], "a table": compiling.OTHERS["a table file"]}
    monkeypatch.setattr(compiling.compile_kernels, "__defaults__", (fits,))
    monkeypatch.setattr("discreet.curator.kernel_checks", lambda: iter(()))
    monkeypatch.setattr("discreet.curator.sampler_checks", lambda draws: iter(()))
    result = run("selftest", "--compile")
    assert result.exit_code == 0, result.output
    assert "functions compiled\n" in result.stdout
    found = json.loads(run("selftest", "--compile", "--json").stdout)
    assert [job["name"] for job in found["compiled"]] == ["gd", "a table"]
    assert [job["functions"] for job in found["compiled"]] == [0, 0]  # the first time, all was compiled


def test_a_failed_check_is_exit_code_one(run, monkeypatch):
    monkeypatch.setattr("discreet.curator.kernel_checks", lambda: iter([Check("kernels", True, "the same")]))
    monkeypatch.setattr("discreet.curator.sampler_checks", lambda draws: iter([Check("noise", False, "p = 0")]))
    result = run("selftest")
    assert result.exit_code == 1
    assert "FAIL" in result.stdout
    assert "do not fit private models" in result.stderr


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("sampler", "edges"),
    [(rounded_gaussian, known_draws._normal_quantiles()), (discrete_laplace, known_draws._laplace_quantiles())],
)
def test_a_wrong_scale_or_shift_is_found(sampler, edges):
    entropy = SystemEntropy()
    assert law_check("right", sampler, edges, DRAWS, entropy).passed
    for wrong in (
        lambda count, m, source: sampler(count, m, source) * 1.05,
        lambda count, m, source: sampler(count, m, source) + 2 ** (m - 4),
        lambda count, m, source: np.abs(sampler(count, m, source)),
        lambda count, m, source: np.repeat(sampler(count // 4, m, source), 4),
    ):
        assert not law_check("wrong", wrong, edges, 4 * DRAWS, entropy).passed  # 50,000 miss a twentieth in 6 % of runs


@pytest.mark.statistical
@pytest.mark.parametrize("numerator", [6554, 7])
def test_a_wrong_sampling_probability_is_found(monkeypatch, numerator):
    n = DRAWS * (1000 if numerator == 7 else 1)
    assert poisson_check(n, SystemEntropy(), numerator).passed
    wrong = numerator + max(1, numerator // 5) + (numerator == 7)
    monkeypatch.setattr(known_draws, "poisson_sample", lambda size, _, source: poisson_sample(size, wrong, source))
    assert not poisson_check(n, SystemEntropy(), numerator).passed


class Stuck(SystemEntropy):
    def words(self, count):
        return super().words(count) | np.uint64(1 << 17)


class Repeating(SystemEntropy):
    def words(self, count):
        return np.repeat(super().words(count // 2), 2)


@pytest.mark.parametrize("source", [Stuck(), Repeating()])
def test_bad_entropy_is_found(source):
    assert entropy_check(SystemEntropy()).passed
    assert not entropy_check(source).passed
