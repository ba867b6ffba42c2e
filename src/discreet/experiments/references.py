"""What to compare a private model with: one without privacy, and one that knows nothing."""

from dataclasses import dataclass

from discreet.datasets import Table


@dataclass(frozen=True)
class References:
    """Accuracies on the public rows without noise (scikit-learn), and of always saying the commoner class."""

    non_private: float
    majority: float


def references(train: Table, public: Table) -> References:
    """What no privacy gives, and what no data at all gives."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    free = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=500)).fit(train.X, train.y)
    rate = float(public.y.mean())
    return References(float(free.score(public.X, public.y)), max(rate, 1 - rate))
