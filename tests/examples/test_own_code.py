"""A solver or a loss from outside the package does all that a built-in one does, and touches no file of ours."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet
from discreet import Bounds, DPLogisticRegression, audit, load
from discreet.cli.app import app
from discreet.errors import Unsupported
from discreet.losses.proofs import wrong_constants
from discreet.models import DPRegressor
from discreet.models.fit import FitSettings, RowExtras, fit_model
from discreet.penalties import L2
from discreet.registry import load_plugins
from discreet.testing import Privacy, Refuted
from tests.cli.tables import NUMBERS, SCHEMA, write_table

ROOT = Path(__file__).parents[2]
SRC = Path(discreet.__file__).parent
OWN_SOLVER, OWN_LOSS = ROOT / "examples" / "own_solver.py", ROOT / "examples" / "own_loss.py"


def python(text: str, src: Path = SRC.parent, **environment: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": str(src), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def discreet_run(monkeypatch):
    """Run a command with both examples as plug-ins."""
    monkeypatch.setenv("DISCREET_PLUGINS", f"{OWN_SOLVER},{OWN_LOSS}")

    def run(*arguments: object) -> str:
        found = CliRunner().invoke(app, [str(one) for one in arguments], prog_name="discreet")
        assert found.exit_code == 0, found.output
        return found.stdout

    return run


@pytest.fixture
def own(monkeypatch):
    """Both examples, loaded as the command line loads them."""
    monkeypatch.setenv("DISCREET_PLUGINS", f"{OWN_SOLVER},{OWN_LOSS}")
    load_plugins()
    return sys.modules["discreet_plugin_own_solver"], sys.modules["discreet_plugin_own_loss"]


def test_an_own_solver_fits_a_table_by_its_name(discreet_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    told = json.loads(
        discreet_run("fit", "table.csv", "-s", "schema.toml", "--solver", "eg", "--public", "--no-report", "--json")
    )
    assert told["certificate"]["solver"]["name"] == "eg"
    assert "PRIVATE" in discreet_run("inspect", "model")
    assert discreet_run("verify", "model").startswith("Verified: ")


def test_an_own_loss_fits_a_table_by_its_name(discreet_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv")
    (tmp_path / "schema.toml").write_text(NUMBERS)
    fit = ("fit", "table.csv", "-s", "schema.toml", "--model", "regressor", "--loss", "log_cosh", "--public")
    told = json.loads(discreet_run(*fit, "--solver", "gd", "--no-report", "--json"))
    assert told["certificate"]["model"] == "DPRegressor"
    assert "PRIVATE" in discreet_run("inspect", "model")


def test_an_own_solver_is_completed_and_refused_without_its_plugin(discreet_run, monkeypatch):
    monkeypatch.setenv("_DISCREET_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "3")
    monkeypatch.setenv("COMP_WORDS", "discreet fit --solver ")
    assert {"eg", "gd", "auto"} <= set(discreet_run().split())
    for name in ("_DISCREET_COMPLETE", "COMP_CWORD", "COMP_WORDS"):
        monkeypatch.delenv(name)
    text = "from discreet.cli import main; import sys; sys.argv = ['discreet', 'fit', 't', '-s', 's', '--solver', 'eg']"
    done = subprocess.run(
        [sys.executable, "-c", f"{text}; main()"],
        env={**os.environ, "PYTHONPATH": str(SRC.parent), "DISCREET_PLUGINS": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "eg" in done.stderr
    assert "recipe" in done.stderr


def test_a_saved_model_of_an_own_solver_is_read_only_where_it_is_registered(own, tmp_path):
    solver = own[0].ExponentiatedGradient(n_steps=3, clip=0.5)
    X, y = np.linspace(-1, 1, 40).reshape(20, 2), np.arange(20) % 2
    model = DPLogisticRegression(1.0, 1e-6, bounds=1.0, classes=(0, 1), solver=solver, ledger=False).fit(X, y)
    path = model.save(tmp_path / "own.discreet")
    assert load(path).solver == solver
    text = f"""
import discreet, sys
from discreet.models.persist import UnreadableModel
try:
    discreet.load({str(path)!r})
    print("read")
except UnreadableModel as refusal:
    print(refusal)
print("imported", any("own_solver" in name for name in sys.modules))
from discreet.registry import load_plugins
load_plugins()
print(discreet.load({str(path)!r}).solver.n_steps)
"""
    told = python(text, DISCREET_PLUGINS=str(OWN_SOLVER)).splitlines()
    assert "is not registered here" in told[0]
    assert told[1:] == ["imported False", "3"]


def test_an_own_loss_is_what_it_declares_and_serves_every_kind_of_solver(own):
    loss = own[1].LogCosh(0.25)
    assert wrong_constants(loss) == []
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = X @ [0.5, -0.25]
    settings = {"bounds": Bounds(1.0, target=(-1, 1), n=3000), "delta": 1e-6, "neighbors": "zero_out", "ledger": False}
    for solver in ("gd", "cd", "recipe", "objective"):
        model = DPRegressor(8.0, loss=loss, solver=solver, **settings).fit(X, y)
        assert model.certificate_.is_private
        if solver != "objective":  # it shrinks rows, and so lengthens coefficients
            assert np.abs(model.coef_ - [0.5, -0.25]).max() < 0.25, solver


WRONG = """
from typing import NamedTuple
from discreet.losses.base import Loss, curvature, derivative, one_output, register_loss, value


class _Fields(NamedTuple):
    weight: float = 4.0


@register_loss("boastful")
class Boastful(_Fields, Loss):
    __slots__ = ()
    task = "classification"
    lipschitz = 0.5  # it is 4
    smoothness = 1.0
    proven = True


@value.of(Boastful)
def _value(loss, margin, target):
    gap = 1.0 - target * margin
    return loss.weight * (gap if gap > 0.0 else 0.0)


@derivative.of(Boastful)
def _derivative(loss, margin, target):
    return -loss.weight * target if target * margin < 1.0 else 0.0


@curvature.of(Boastful)
def _curvature(loss, margin, target):
    return 0.0


one_output(Boastful)
"""


def test_a_loss_with_wrong_constants_is_caught_and_cannot_harm_a_solver_that_clips(tmp_path, monkeypatch):
    (tmp_path / "boastful.py").write_text(WRONG)
    monkeypatch.setenv("DISCREET_PLUGINS", str(tmp_path / "boastful.py"))
    load_plugins()
    loss = sys.modules["discreet_plugin_boastful"].Boastful()
    with pytest.raises(Refuted, match="longer than the loss declares"):
        Privacy().check(loss=loss, runs=0)

    def fit(X, y, groups=None, solver="gd"):
        facts = {"bounds": Bounds(1.0, classes=(0, 1), n=6), "penalty": L2(0.1), "solver": solver}
        budget = {"epsilon": 1.0, "delta": 1e-6, "neighbors": "zero_out", "ledger": False}
        settings = FitSettings("m", loss=loss, fit_intercept=False, **facts, **budget)
        return _Shown(fit_model(settings, X, y, RowExtras(groups)))

    X, y = np.linspace(-1, 1, 12).reshape(6, 2), np.arange(6) % 2
    assert not audit.replay(fit, X, y, bounds=Bounds(1.0, classes=(0, 1), n=6), neighbors="zero_out").refuted
    for solver in ("output", "objective"):
        with pytest.raises(Unsupported, match="Boastful"):
            fit(X, y, solver=solver)


class _Shown:
    def __init__(self, found):
        self.coef_, self.intercept_, self.certificate_ = found.coef, found.intercept, found.certificate


def test_a_loss_that_is_not_proven_is_refused_where_noise_rests_on_it(own, monkeypatch):
    loss = own[1].LogCosh(0.25)
    monkeypatch.setattr(type(loss), "proven", False)
    for solver in ("output", "objective", "exponential"):
        model = DPRegressor(1.0, 1e-6, bounds=Bounds(1.0, n=10), target=(-1, 1), loss=loss, solver=solver, ledger=False)
        with pytest.raises(Unsupported, match="rests on"):
            model.fit(np.zeros((10, 2)), np.zeros(10))


NEW_SOLVER = '''"""One file."""

from dataclasses import dataclass

from discreet.solvers.gd import GradientDescent


@dataclass(frozen=True)
class Mine(GradientDescent):
    """A new one."""

    name = "mine"
'''
NEW_LOSS = '''"""One file."""

from typing import NamedTuple

from discreet.losses.base import Loss


class _Fields(NamedTuple):
    width: float = 1.0


class MyLoss(_Fields, Loss):
    """A new one."""

    __slots__ = ()
'''


@pytest.mark.thorough
def test_a_new_built_in_solver_or_loss_is_one_file_and_its_names(tmp_path):
    """The package is copied, a file and its names are added for each, and both are known everywhere."""
    shutil.copytree(SRC, tmp_path / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "discreet" / "solvers" / "mine.py").write_text(NEW_SOLVER)
    (tmp_path / "discreet" / "losses" / "mine.py").write_text(NEW_LOSS)
    for folder, cls in (("solvers", "Mine"), ("losses", "MyLoss")):
        names, block = tmp_path / "discreet" / folder / "__init__.py", "if TYPE_CHECKING:\n"
        line = f"    from discreet.{folder}.mine import {cls} as {cls}\n"
        names.write_text(names.read_text().replace(block, block + line))
        with (tmp_path / "discreet" / "registry.py").open("a") as registry:
            registry.write(f"BUILT_IN_{folder.upper()}['mine'] = 'discreet.{folder}.{cls}'\n")
    text = """
import sys
from discreet.cli.options import registered_solvers
assert "mine" in registered_solvers()
assert "discreet.solvers.mine" not in sys.modules, "nothing is imported for its name"
from discreet.models.fit import solver_names
from discreet.models.persist import _setting_class
from discreet.audit.guessing import solver_case
from discreet.losses.base import LOSSES
print("mine" in solver_names(), _setting_class("Mine").__name__, solver_case("mine").name, LOSSES["mine"].__name__)
from discreet.cli import main
sys.argv = ["discreet", "fit", "--help"]
main()
"""
    told = python(text, tmp_path, COLUMNS="300")
    assert told.startswith("True Mine mine MyLoss\n")
    assert "svrg" in told
    assert "mine" in told.partition("\n")[2]


KERNEL = """
import sys
sys.path.insert(0, {folder!r})
from numba import njit
from discreet.losses.base import derivative
from discreet.losses import Huber
@njit(cache=True)
def slope(loss, margin, target):
    return derivative(loss, margin, target)
"""


@pytest.mark.thorough
def test_an_own_loss_neither_spoils_the_compilers_cache_nor_runs_stale(tmp_path):
    """Its kernels are cached with all others; a process that cannot import it goes on, and an edit is compiled anew."""
    (tmp_path / "kernel.py").write_text(KERNEL.format(folder=str(tmp_path)))
    (tmp_path / "boastful.py").write_text(WRONG)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ask_own = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernel, boastful; "
    ask_own += "print(kernel.slope(boastful.Boastful(), 0.0, 1.0), sum(kernel.slope.stats.cache_hits.values()))"
    ask_ours = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernel; "
    ask_ours += "print(kernel.slope(kernel.Huber(1.0), 0.5, 0.0))"
    assert python(ask_own, **cache).split() == ["-4.0", "0"]
    assert python(ask_ours, **cache).split() == ["0.5"]
    assert python(ask_own, **cache).split() == ["-4.0", "1"]
    (tmp_path / "boastful.py").write_text(WRONG.replace("-loss.weight * target if", "-2.0 * loss.weight * target if"))
    assert python(ask_own, **cache).split() == ["-8.0", "0"]
