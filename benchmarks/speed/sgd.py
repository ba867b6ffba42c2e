"""A DP-SGD step (sample, clip, sum, noise) against Opacus as it is used, and against a jitted jax-privacy step.

Opacus: ``PrivacyEngine.make_private`` on a DataLoader, hence its own Poisson sampler. jax-privacy: its
clipped gradient and Gaussian noise, on batches of fixed size that numpy draws (the same work as ours, with
the target), and on one given batch without any sampling or gathering, for comparison.
CPU time against Opacus (one thread each), wall time against jax, which uses what threads it likes.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measures.timing import Timing, interleaved
from benchmarks.measures.timing_rows import INSTALL, Goal, Row, at_least
from benchmarks.problems.logistic import blocks, clip_for, records
from benchmarks.sizes import size
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget, Neighbors
from discreet.curator import Curator
from discreet.curator.engines import DenseEngine
from discreet.losses import Logistic

N, P, BATCH = size(1_000_000, 10_000), 100, 1000
NOISE_MULTIPLIER = 1.0


def run(rounds: int) -> Iterator[Row]:
    candidates = {"ours": our_step()}
    if _has("torch", "opacus"):
        candidates["opacus"] = opacus_step()
    if _has("jax", "jax_privacy"):
        candidates |= jax_privacy_steps()
    taken = interleaved(candidates, rounds=2 * rounds, least_seconds=0.01)
    yield _row("Opacus with its loader", taken, "opacus", at_least(80), "cpu")
    yield _row("jax-privacy, batch drawn by numpy", taken, "jax-privacy drawn", at_least(1.5), "wall")
    yield _row("jax-privacy, batch given", taken, "jax-privacy given", at_least(1.5), "wall")


def _has(*modules: str) -> bool:
    return all(find_spec(module) is not None for module in modules)


def _row(peer: str, taken: dict[str, Timing], name: str, goal: Goal | None, clock: str) -> Row:
    title, ours = f"DP-SGD step, n={N:.0e}, p={P}, batch {BATCH}, speed-up over {peer}", taken["ours"]
    if name not in taken:
        return Row(title, "ms", 1e3 * ours.cpu, goal=goal, spread=ours.spread, note=INSTALL)
    return Row.speed_up(title, ours, taken[name], goal, clock=clock)


def our_step() -> Callable[[], object]:
    """A curator's sampled gradient at fixed weights; the plan is long enough never to run out."""
    clip = clip_for(P)
    release = Release("noisy_gradient", 10**6, sampling_probability=BATCH / N, clip=clip)
    domain = Domain(np.ones(P), float(np.sqrt(P)), N, Neighbors.REPLACE_ONE, intercept=False)
    curator = Curator(
        DenseEngine(records(N, P), threads=1),
        domain,
        Logistic(),
        priced=price_plan(Plan((release,)), Budget(1.0, 1e-6)),
        facts={"unit": "record"},
    )
    w = np.random.default_rng(1).normal(size=P) / np.sqrt(P)
    return lambda: curator.noisy_gradient(w, clip=clip)


def _floats() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    X, y = np.empty((N, P), dtype=np.float32), np.empty(N, dtype=np.float32)
    for where, features, targets in blocks(N, P):
        X[where], y[where] = features, (targets + 1) / 2
    return X, y


def opacus_step() -> Callable[[], object]:
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    X, y = _floats()
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    model = torch.nn.Linear(P, 1, bias=False)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=clip_for(P),
    )
    loss = torch.nn.BCEWithLogitsLoss()

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    stream = batches()

    def step() -> None:
        features, targets = next(stream)
        optimizer.zero_grad()
        loss(model(features)[:, 0], targets).backward()
        optimizer.step()

    return step


def jax_privacy_steps() -> dict[str, Callable[[], object]]:
    """A jitted step on one given batch; and one that gathers a fresh batch of fixed size, drawn by numpy."""
    import jax
    import jax.numpy as jnp
    import jax_privacy

    X, y = (jnp.asarray(values) for values in _floats())
    rng, clip = np.random.default_rng(2), clip_for(P)

    def loss(w: Any, one: Any) -> Any:
        features, target = one
        return jnp.logaddexp(0.0, (1.0 - 2.0 * target) * (features @ w))

    gradient = jax_privacy.clipped_grad(loss, argnums=0, batch_argnums=1, l2_clip_norm=clip, keep_batch_dim=False)

    def noisy_step(w: Any, key: Any, batch: Any) -> Any:
        key, own = jax.random.split(key)
        noise = jax.random.normal(own, w.shape) * (NOISE_MULTIPLIER * clip)
        return w - 0.1 / BATCH * (gradient(w, batch) + noise), key

    on_batch = jax.jit(noisy_step)
    gathering = jax.jit(lambda w, key, X, y, chosen: noisy_step(w, key, (X[chosen], y[chosen])))
    batch, state = (X[:BATCH], y[:BATCH]), [jnp.zeros(P), jax.random.key(0)]

    def given() -> None:
        state[:] = on_batch(*state, batch)
        state[0].block_until_ready()

    def drawn() -> None:
        state[:] = gathering(*state, X, y, rng.choice(N, BATCH, replace=False))
        state[0].block_until_ready()

    return {"jax-privacy given": given, "jax-privacy drawn": drawn}
