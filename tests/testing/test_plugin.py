"""The pytest plug-in, as its users meet it: test files of their own, run by a pytest of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from numba.core.caching import _CacheLocator

import discreet
import discreet.testing
from discreet.testing import Privacy, Refuted

SRC = str(Path(discreet.__file__).parents[1])


def python(*arguments, cache=None, **settings):
    """A process of its own: compilers do not bear being loaded twice into one."""
    environment = {**os.environ, "PYTHONPATH": SRC, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **settings,
    )


def cache_for_strangers(folder):
    """A copy of the kernels' cache: kernels of a loss that other processes cannot import would spoil it for them."""
    shared = os.environ.get("NUMBA_CACHE_DIR")
    if shared and Path(shared).is_dir():
        return shutil.copytree(shared, folder)
    for compiled in Path(SRC, "discreet").rglob("__pycache__/*.nb[ic]"):
        source = compiled.parent.parent / f"{compiled.name.partition('.')[0]}.py"
        place = folder / _CacheLocator.get_suitable_cache_subpath(str(source))
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy2(compiled, place)
    return folder


class Outcomes(dict):
    """What became of each user's test: None where it passed, else what pytest shows of it.

    Two processes, each when one of its tests is asked for: what compiles kernels of its own, and what does not.
    """

    def __init__(self, make_folder):
        self._make_folder = make_folder

    def __missing__(self, key):
        self.update(run_tests(self._make_folder("users"), QUICK if key[0] in QUICK else set(FILES) - QUICK))
        return self[key]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return Outcomes(tmp_path_factory.mktemp)


def run_tests(folder, names):
    for name in names:
        (folder / f"test_{name}.py").write_text(FILES[name])
    plugin = ("-p", "discreet.testing.plugin", "-p", "no:cacheprovider", "--junitxml=found.xml", f"--rootdir={folder}")
    cache = None if set(names) <= QUICK else cache_for_strangers(folder / "cache")
    done = python("-m", "pytest", *plugin, str(folder), cwd=folder, cache=cache)
    assert (folder / "found.xml").exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(folder / "found.xml").iter("testcase"):
        failed = [child.text for child in case if child.tag in ("failure", "error")]
        found[case.get("classname").rpartition(".")[2].removeprefix("test_"), case.get("name")] = (
            "".join(failed) or None
        )
    return found


SOLVER = """
from dataclasses import asdict, dataclass

import numpy as np
from discreet.accounting import Plan, Release
from discreet.solvers.base import Solution, public_count

@dataclass(frozen=True)
class SignDescent:
    name = "signs"
    n_steps: int = 3
    clip: float = 0.5

    def plan(self, domain, loss, penalty):
        return Plan([Release("noisy_gradient", self.n_steps, clip=self.clip)])

    def solve(self, curator, penalty, progress=None):
        w = np.zeros(curator.domain.shape)
        for _ in range(self.n_steps):
            w = w - 0.1 * np.sign(self.gradient(curator, w))
        return Solution(w)

    def gradient(self, curator, w):
        return curator.noisy_gradient(w, clip=self.clip)

    def settings(self):
        return {"name": self.name, **asdict(self)}
"""


HONEST = """
def test_mine(privacy):
    assert len(privacy.check(SignDescent(), runs=60)) == 6

class Curious(SignDescent):
    '''Asks for more than it planned.'''
    def solve(self, curator, penalty, progress=None):
        super().solve(curator, penalty)
        return super().solve(curator, penalty)

class Moody(SignDescent):
    '''Depends on something beside its answers.'''
    calls = []
    def gradient(self, curator, w):
        self.calls.append(None)
        return len(self.calls) * curator.noisy_gradient(w, clip=self.clip) + len(self.calls)

    def solve(self, curator, penalty, progress=None):
        return Solution(self.gradient(curator, np.zeros(curator.domain.shape)))

def test_curious(privacy):
    privacy.check(Curious(), runs=0)

def test_moody(privacy):
    privacy.check(Moody(), runs=0)
"""


LOSS = """
import math
from typing import NamedTuple
from discreet.losses.base import Loss, curvature, derivative, one_output, value

class Fields(NamedTuple):
    scale: float = 1.0

class {name}(Fields, Loss):
    __slots__ = ()
    task = "regression"
    lipschitz = {lipschitz}
    smoothness = {smoothness}

@value.of({name})
def _value(loss, margin, target):
    return math.sqrt(1.0 + (margin - target) ** 2) - 1.0

@derivative.of({name})
def _derivative(loss, margin, target):
    u = margin - target
    return u / math.sqrt(1.0 + u * u)

@curvature.of({name})
def _curvature(loss, margin, target):
    return (1.0 + (margin - target) ** 2) ** -1.5

one_output({name})

def test_mine(privacy):
    privacy.check(loss={name}(), runs={runs}, relations=["replace_one", "add_remove"])
"""


FOREIGN = """
import numpy as np

SIDES = [(np.ones((8, 1)), np.ones(8)), (np.ones((8, 1)), np.append(np.ones(7), 0.0))]
noise = np.random.default_rng(3)

def laplace(X, y):
    return y.sum() + noise.laplace(scale=1.0)

def exact(X, y):
    return y.sum()

def one_noise_for_two(X, y):
    z = noise.laplace(scale=4.0)
    return [y.sum() + z, 2 * y.sum() + z]

def test_laplace(privacy):
    found = privacy.audit(laplace, *SIDES, epsilon=1.0)
    assert 0.2 < found.bound < 1 and found.verdict == "NOT REFUTED"

def test_exact(privacy):
    privacy.audit(exact, *SIDES, epsilon=1.0)

def test_one_noise_for_two(privacy):
    privacy.audit(one_noise_for_two, *SIDES, epsilon=1.0)
"""


ESTIMATOR = """
import numpy as np
from discreet import Bounds, DPLogisticRegression
from discreet.solvers import GradientDescent
from discreet.testing import seeded

BOUNDS = Bounds(1.0, classes=(0, 1))
X, y = np.linspace(-1, 1, 8).reshape(4, 2), np.array([0, 1, 0, 1])

def fit(X, y, groups=None):
    model = DPLogisticRegression(2.0, 1e-5, bounds=BOUNDS, solver=GradientDescent(n_steps=2), ledger=False)
    return model.fit(X, y, groups)

def test_replay(privacy):
    assert privacy.replay(fit, X, y, bounds=BOUNDS).runs > 20

def test_repeatable(privacy):
    def repeatable(X, y, groups=None):  # so that runs can be compared: each has the same noise
        with seeded(0):
            return fit(X, y, groups)

    privacy.replay(repeatable, X, y, bounds=BOUNDS)

def test_transcript(privacy):
    assert privacy.transcript(fit, (X, y), (X, np.array([1, 1, 0, 1])), runs=50).level == "transcript"
"""

FILES = {
    "solver": SOLVER + HONEST,
    "loss": LOSS.format(name="PseudoHuber", lipschitz=1.0, smoothness=1.0, runs=60),
    "steep": LOSS.format(name="TooSteep", lipschitz=0.5, smoothness=1.0, runs=0),
    "bent": LOSS.format(name="TooBent", lipschitz=1.0, smoothness=0.3, runs=0),
    "foreign": FOREIGN,
    "estimator": ESTIMATOR,
}
QUICK = {"foreign", "estimator"}


def with_level(case, *said):
    level = () if case[0] in QUICK else pytest.mark.thorough
    return pytest.param(case, *said, marks=level, id="-".join(case))


@pytest.mark.parametrize(
    "honest",
    [
        with_level(("solver", "test_mine")),
        with_level(("loss", "test_mine")),
        with_level(("foreign", "test_laplace")),
        with_level(("estimator", "test_replay")),
        with_level(("estimator", "test_transcript")),
    ],
)
def test_what_is_honest_passes(outcomes, honest):
    """The statistical ones fail once in a million runs."""
    assert outcomes[honest] is None


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        with_level(("estimator", "test_repeatable"), "of noise were used more than once"),
        with_level(("solver", "test_curious"), "PlanViolation"),
        with_level(("solver", "test_moody"), "REFUTED: signs, replay, replace_one"),
        with_level(("steep", "test_mine"), "lipschitz: a derivative is longer than the loss declares"),
        with_level(("bent", "test_mine"), "smoothness: the curvature exceeds what the loss declares"),
        with_level(("foreign", "test_exact"), "REFUTED: a fit, model, replace_one"),
        with_level(("foreign", "test_one_noise_for_two"), "REFUTED: a fit, model, replace_one"),
    ],
)
def test_what_is_broken_fails_and_says_why(outcomes, broken, said):
    assert said in outcomes[broken]
    assert "def require" not in outcomes[broken]  # the traceback ends at the user's own line


def test_the_checks_need_no_pytest():
    with pytest.raises(Refuted, match="REFUTED: a fit, model, replace_one") as failed:
        Privacy().audit(lambda x: x, ([1.0],), ([2.0],), epsilon=1.0, runs=200)
    assert failed.value.audit.refuted


def test_loading_it_costs_nothing():
    """Everybody who installed discreet has it in every pytest run."""
    code = """
import sys
import pytest
import discreet.testing.plugin as plugin
heavy = {"numpy", "scipy", "numba", "sklearn", "dp_accounting"} & set(sys.modules)
hooks = [name for name in vars(plugin) if name.startswith("pytest_")]
print(sorted(heavy), hooks, sorted(name for name in sys.modules if name.startswith("discreet")))
"""
    done = python("-c", code)
    assert (
        done.stdout.strip()
        == "[] [] ['discreet', 'discreet.lazy_names', 'discreet.testing', 'discreet.testing.plugin']"
    )
