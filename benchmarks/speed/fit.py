"""A whole private fit, from floats to certificate, against scikit-learn's own fit of the same data."""

from collections.abc import Iterator

from sklearn.linear_model import LogisticRegression

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_most
from benchmarks.problems.logistic import features_and_targets
from benchmarks.sizes import size
from discreet import DPLogisticRegression
from discreet.solvers import GradientDescent

N, P, STEPS = size(100_000, 1000), 100, 100


def run(rounds: int) -> Iterator[Row]:
    X, y = features_and_targets(N, P)
    private = DPLogisticRegression(epsilon=1.0, bounds=1.0, classes=(-1.0, 1.0), solver=GradientDescent(n_steps=STEPS))
    plain = LogisticRegression()
    taken = interleaved(
        {"ours": lambda: private.fit(X, y), "peer": lambda: plain.fit(X, y)}, rounds=max(5, rounds // 3)
    )
    title = f"fit of {STEPS} gradients, n={N:.0e}, p={P}, against LogisticRegression()"
    yield Row.faster(title, taken["ours"], taken["peer"], at_most(3.0))
    yield Row.faster(f"{title}, CPU time of all threads", taken["ours"], taken["peer"], None, clock="cpu")
