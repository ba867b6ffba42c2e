"""What the tests share: records on the integer grid, and seeded noise."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import numpy as np
import pytest
from hypothesis import settings

from discreet.accounting import objective_perturbation, pricing
from discreet.curator.noise import Entropy, SeededEntropy, use_entropy
from tests.levels import pytest_collection_modifyitems  # noqa: F401  a hook

pytest_plugins = ["pytester"]

# kernels compile on first use: a time limit for one example would only measure that
settings.register_profile("discreet", deadline=None, derandomize=True)
settings.load_profile("discreet")

GRID = 2**14


class Table:
    """Records whose features lie on the grid that the door puts them on, so that encoding them loses nothing."""

    def __init__(self, n: int = 400, p: int = 5, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.X = np.rint(rng.uniform(-1, 1, (n, p)) * GRID) / GRID
        self.with_ones = np.hstack([self.X, np.ones((n, 1))])
        margins = self.with_ones @ rng.normal(size=p + 1)
        scores = 2 * self.with_ones @ rng.normal(size=(p + 1, 3)) + rng.gumbel(size=(n, 3))
        self.signs = np.where(3 * margins + rng.logistic(size=n) > 0, 1, -1)
        self.labels = scores.argmax(axis=1)
        self.numbers = np.clip(margins / 5 + 0.1 * rng.normal(size=n), -1, 1)
        self.counts = np.minimum(rng.poisson(np.exp(margins / 2)), 20)


@pytest.fixture(autouse=True, scope="session")
def no_configured_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The ledger of whoever runs the tests is charged for nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DISCREET_LEDGER", raising=False)
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def _no_cached_prices(request: pytest.FixtureRequest) -> Iterator[None]:
    """Prices and noise are cached: a test that patches something starts and ends without any."""
    caches = (pricing._price, pricing._noise_for, objective_perturbation.loss_bound)
    patched = "monkeypatch" in request.fixturenames
    for cached in caches if patched else ():
        cached.cache_clear()
    yield
    for cached in caches if patched else ():
        cached.cache_clear()


@pytest.fixture
def no_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make reports without their forecast, whose simulated fits take seconds."""
    monkeypatch.setattr("discreet.report.model_report.cost_forecast", lambda *_, **__: None)


@pytest.fixture(scope="session")
def table() -> Table:
    return Table()


@pytest.fixture(scope="session")
def small_table() -> Table:
    return Table(n=120, p=3, seed=1)


@pytest.fixture(scope="session")
def seeded() -> Callable[[int], AbstractContextManager[Entropy]]:
    """``with seeded(7): model.fit(X, y)``: noise that can be had again."""
    return lambda seed: use_entropy(SeededEntropy(seed))
