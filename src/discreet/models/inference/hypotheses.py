"""Which coefficients a name means, and how a data frame names them: features, or features of several classes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import Unsupported
from discreet.typing import Floats

if TYPE_CHECKING:
    import pandas as pd

Blocks = tuple[tuple[str, str], ...]
"""The class and the feature of each coefficient, where there are several classes; else empty."""


def index_of(names: Sequence[str], blocks: Blocks) -> "pd.Index":
    """Return the index of a table of effects: by feature, or by class and feature."""
    import pandas as pd

    if blocks:
        return pd.MultiIndex.from_tuples(blocks, names=["class", "feature"])
    return pd.Index(names, name="feature")


def hypothesis_rows(
    hypotheses: str | Sequence[str] | Sequence[Sequence[float]] | Floats, names: Sequence[str], blocks: Blocks
) -> Floats:
    """Return hypotheses as rows of a matrix; a feature's name alone means its effects on every class."""
    if isinstance(hypotheses, str):
        hypotheses = [hypotheses]
    if isinstance(hypotheses, Sequence) and all(isinstance(name, str) for name in hypotheses):
        found = [_places(str(name), names, blocks) for name in hypotheses]
        return np.eye(len(names))[[j for places in found for j in places]]
    rows = np.atleast_2d(np.asarray(hypotheses, dtype=float))
    if rows.shape[1] != len(names):
        raise Unsupported(f"a hypothesis has one number for each of {len(names)} coefficients")
    return rows


def _places(name: str, names: Sequence[str], blocks: Blocks) -> list[int]:
    if name in names:
        return [list(names).index(name)]
    found = [j for j, (_, feature) in enumerate(blocks) if feature == name]
    if not found:
        raise Unsupported(f"there is no effect called {name}: choose among {', '.join(names)}")
    return found
