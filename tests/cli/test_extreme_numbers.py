"""Numbers that nobody would choose are answered or refused in one line: never an error of discreet's own."""

import random
from contextlib import suppress
from itertools import product

import pytest

from discreet.accounting.gaussian import epsilon_of, mu_of
from discreet.accounting.rdp import zcdp_of_budget
from tests.cli.tables import SCHEMA, write_table

NUMBERS = (
    *("1e-320", "1e-300", "1e-100", "1e-9", "1e-3", "0.5", "1", "30", "1e3", "1e9", "1e300", "1e308"),
    *("nan", "inf", "0"),
)
RELATIONS = ("replace_one", "zero_out", "add_remove")
SOLVERS = ("auto", "gd", "sgd", "svrg", "agd", "cd", "gcd", "output", "objective", "exponential", "recipe")
FIT = ("fit", "table.csv", "--schema", "schema.toml", "--dry-run", "--allow-large-delta")
TUNE = ("tune", "table.csv", "--schema", "schema.toml", "--settings", "tune.toml", "--dry-run", "--allow-large-delta")
VALUES = (
    *("2020-01-01", "12:00:00", '"a"', '""', "[]", "{}", "true", "1e400", "-1", "0", "1e-320", "1e308", "0.5", "3"),
    *("nan", "inf", '"l2"', '"gd"', '"auto"', "[1]", "[[1, 2], 0]"),
)
PARAMETERS = (
    "alpha",
    "solver",
    "penalty",
    "fit_intercept",
    "start",
    "public_moments",
    "inference",
    "cov_type",
    "other",
)


@pytest.fixture
def answered(run, tmp_path, monkeypatch):
    """Run a command that is served or refused."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv", n=60)
    (tmp_path / "schema.toml").write_text(SCHEMA)

    def invoke(*words):
        result = run(*words)
        assert result.exit_code in (0, 2), (words, result.output)
        if result.exit_code == 2:
            assert len(result.stderr.strip().splitlines()) == 1, (words, result.output)

    return invoke


SEEN = [
    ("price", "-t", 3, "-z", "1e-320"),
    ("price", "-t", 5, "-e", "1e308"),
    ("price", "-t", 1, "-z", "1e300", "-q", 0.5, "--neighbors", "zero_out"),
    ("price", "-t", 1, "-e", "1e-9", "-d", 0.5, "-q", "1e-9", "-c", 0.5, "--allow-large-delta"),
    (*FIT, "-e", "1e-9", "-d", "1e-5", "--solver", "sgd"),
    (*FIT, "-e", "1e-6", "-d", "1e-3", "--solver", "gcd"),
    (*FIT, "-e", "1e-320", "-d", "1e-9", "--neighbors", "zero_out", "--solver", "agd"),
    (*FIT, "-e", "1e-100", "-d", "1e-300", "--solver", "objective"),
    (*FIT, "-e", "1e-300", "-d", "0", "--solver", "output", "--inference", "sandwich"),
    (*FIT, "-e", "1e-320", "-d", "1e-320", "--solver", "recipe", "--inference", "sandwich"),
]


@pytest.mark.few(5)
@pytest.mark.parametrize("words", SEEN, ids=lambda words: " ".join(map(str, words[-6:])))
def test_what_once_ended_in_an_internal_error(answered, words):
    answered(*words)


@pytest.mark.parametrize("seed", range(12))
def test_plans_of_fits(answered, seed):
    draw = random.Random(seed)
    for _ in range(8):
        words = ["--neighbors", draw.choice(RELATIONS), "-e", draw.choice(NUMBERS), "-d", draw.choice(NUMBERS)]
        words += ["--inference", "sandwich"] if draw.random() < 0.3 else []
        answered(*FIT, *words, "--solver", draw.choice(SOLVERS))


@pytest.mark.parametrize("seed", range(12))
def test_settings_of_searches(answered, seed, tmp_path):
    draw = random.Random(seed)
    for _ in range(10):
        values = draw.choice(VALUES) if draw.random() < 0.3 else f"[{', '.join(draw.choices(VALUES, k=2))}]"
        text = f"[candidates]\n{draw.choice(PARAMETERS)} = {values}\n"
        if draw.random() < 0.4:
            text += f"[estimator]\n{draw.choice(PARAMETERS)} = {draw.choice(VALUES)}\n"
        (tmp_path / "tune.toml").write_text(text)
        words = ["-e", draw.choice(NUMBERS) if draw.random() < 0.4 else 1, "-d", "1e-6"]
        words += ["--mean-runs", draw.choice(NUMBERS)] if draw.random() < 0.3 else []
        words += ["--validation-fraction", draw.choice(NUMBERS)] if draw.random() < 0.3 else []
        answered(*TUNE, *words)


def back_and_forth(epsilon, delta):
    return epsilon_of(mu_of(epsilon, delta), delta)


@pytest.mark.parametrize("rule", [mu_of, zcdp_of_budget, back_and_forth])
def test_a_search_for_a_root_ends(rule):
    for epsilon, delta in product([1e-320, 1e-300, 1e-9, 1.0, 1e300, 1e308], [1e-320, 1e-9, 0.5, 1 - 1e-16]):
        with suppress(ArithmeticError, ValueError):  # which pricing refuses in its own words
            assert rule(epsilon, delta) >= 0
