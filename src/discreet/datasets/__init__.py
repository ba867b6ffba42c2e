"""Synthetic hospital stays: a data set that every installation has. No row describes a real person.

The rows are drawn from a law that is written down below, so that everything about them is public:
where the demos compare accuracies, or fit many models, no one's privacy is spent. The *ranges* are
those of an invented codebook. They are wider than what the law produces, as real codebooks are, and
were never measured from the rows.

The outcome follows a logistic law in the columns' usual units, with a kink and an interaction that
no linear model can express: the best linear model is good, not perfect.

``write_csv`` writes the rows as a file that a hospital might have: words for yes and no, and cells that are empty.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from discreet.bounds import Bounds
from discreet.typing import Floats, Integers

__all__ = ["CLASSES", "CODEBOOK", "OUTCOME", "Table", "codebook_bounds", "hospital", "schema_text", "write_csv"]

CODEBOOK: dict[str, tuple[float, float, str]] = {
    "age": (18, 110, "years; patients under 18 are seen elsewhere"),
    "bmi": (10, 70, "kg/m2"),
    "systolic_pressure": (60, 260, "mmHg, at admission"),
    "heart_rate": (25, 220, "per minute, at admission"),
    "creatinine": (0, 15, "mg/dl, last value"),
    "sodium_deviation": (-20, 20, "mmol/l away from 140, last value"),
    "earlier_visits": (0, 20, "to this hospital within two years; 20 stands for 20 or more"),
    "medications": (0, 40, "prescriptions at discharge; 40 stands for 40 or more"),
    "days_in_hospital": (0, 60, "this stay; 60 stands for 60 or more"),
    "smoker": (0, 1, "1 for yes"),
    "diabetic": (0, 1, "1 for yes"),
    "lives_alone": (0, 1, "1 for yes"),
    "emergency": (0, 1, "1 if admitted through the emergency room"),
}
"""Column -> (lowest, highest, meaning). The ranges are policy, not measurements."""

OUTCOME = "readmitted"
CLASSES = (0, 1)


@dataclass(frozen=True)
class Table:
    """Rows, outcome, the columns' names, and what the codebook says of them.

    Parameters
    ----------
    X : ndarray of shape (n, 13)
        The rows.
    y : ndarray of shape (n,)
        Whether the patient came back.
    names : tuple of str
        The columns.
    bounds : Bounds
        The codebook's ranges and the two classes.

    Examples
    --------
    >>> from discreet.datasets import hospital
    >>> hospital(100).rows(0, 10).X.shape
    (10, 13)
    """

    X: Floats
    y: Integers
    names: tuple[str, ...]
    bounds: Bounds

    def rows(self, first: int, last: int) -> "Table":
        """Return the rows from ``first`` to ``last - 1``."""
        return Table(self.X[first:last], self.y[first:last], self.names, self.bounds)


def codebook_bounds() -> Bounds:
    """Return the public ranges, in the columns' order, and the two classes of the outcome.

    Examples
    --------
    >>> from discreet.datasets import codebook_bounds
    >>> codebook_bounds().features[0]
    (18.0, 110.0)
    """
    return Bounds(features=[(low, high) for low, high, _ in CODEBOOK.values()], classes=CLASSES)


def hospital(n: int = 40_000, seed: int = 0) -> Table:
    """Generate synthetic hospital stays; the same for the same seed.

    ``readmitted`` is 1 where the patient came back within 90 days.

    Parameters
    ----------
    n : int, default=40_000
        The number of stays.
    seed : int, default=0
        Of the generator.

    Examples
    --------
    >>> from discreet.datasets import hospital
    >>> table = hospital(1000)
    >>> table.X.shape, table.names[0]
    ((1000, 13), 'age')
    """
    rng = np.random.default_rng(seed)
    columns = _columns(n, rng)
    X = np.column_stack([columns[name] for name in CODEBOOK])
    chance = 1.0 / (1.0 + np.exp(-_log_odds(columns)))
    y = (rng.uniform(size=n) < chance).astype(np.int64)
    return Table(X, y, tuple(CODEBOOK), codebook_bounds())


def _columns(n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Patients: a hidden frailty makes the columns depend on each other, as they do in hospitals."""
    frailty = rng.normal(size=n)
    age = np.clip(58 + 16 * (0.5 * frailty + 0.87 * rng.normal(size=n)), 18, 104)
    bmi = 27 + 5 * rng.normal(size=n)
    diabetic = rng.uniform(size=n) < 1 / (1 + np.exp(2.6 - 0.11 * (bmi - 27) - 0.03 * (age - 58)))
    days = rng.gamma(1.6, 2.6 * np.exp(0.25 * frailty))
    columns = {
        "age": age,
        "bmi": np.clip(bmi, 14, 58),
        "systolic_pressure": np.clip(118 + 0.28 * age + 17 * rng.normal(size=n), 75, 225),
        "heart_rate": np.clip(79 + 4 * frailty + 13 * rng.normal(size=n), 38, 180),
        "creatinine": np.clip(0.95 * np.exp(0.22 * frailty + 0.35 * rng.normal(size=n)), 0.3, 12),
        "sodium_deviation": np.clip(-1 - 0.8 * frailty + 3.2 * rng.normal(size=n), -18, 15),
        "earlier_visits": np.minimum(rng.poisson(1.3 * np.exp(0.75 * frailty)), 20),
        "medications": np.minimum(rng.poisson(7 * np.exp(0.28 * frailty)), 40),
        "days_in_hospital": np.minimum(np.ceil(days), 60),
        "smoker": rng.uniform(size=n) < 0.24,
        "diabetic": diabetic,
        "lives_alone": rng.uniform(size=n) < 1 / (1 + np.exp(1.1 - 0.02 * (age - 58))),
        "emergency": rng.uniform(size=n) < 1 / (1 + np.exp(0.2 - 0.3 * frailty)),
    }
    return {name: np.round(values.astype(np.float64), 1) for name, values in columns.items()}


def _log_odds(columns: dict[str, Floats]) -> Floats:
    c = columns
    linear = (
        -3.5
        + 0.040 * (c["age"] - 58)
        + 0.020 * (c["bmi"] - 27)
        + 0.011 * (c["heart_rate"] - 79)
        - 0.06 * c["sodium_deviation"]
        + 0.45 * c["earlier_visits"]
        + 0.10 * c["medications"]
        + 0.05 * c["days_in_hospital"]
        + 0.75 * c["smoker"]
        + 0.50 * c["diabetic"]
        + 0.70 * c["lives_alone"]
        + 0.85 * c["emergency"]
    )
    beyond_lines = 0.35 * np.maximum(c["creatinine"] - 1.5, 0) + 0.4 * c["smoker"] * c["diabetic"]
    return np.asarray(linear + beyond_lines)


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


WORDS = ("no", "yes")
_TRUTHS = ("smoker", "diabetic", "lives_alone")
_EMPTY_EVERY = 17  # stays without a body mass index


def schema_text() -> str:
    """Return what is publicly known of the file, as its owner would write it.

    Examples
    --------
    >>> from discreet import Schema
    >>> from discreet.datasets import schema_text
    >>> Schema.from_toml(schema_text()).target.column
    'readmitted'
    """
    return files("discreet.datasets").joinpath("hospital_schema.toml").read_text(encoding="utf-8")


def write_csv(table: Table, path: Path) -> Path:
    """Write the rows as CSV: words for yes and no, and some cells empty.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from discreet.datasets import hospital, write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(write_csv(hospital(10), Path(folder) / "stays.csv").read_text().splitlines())
    11
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        header = ["admission" if name == "emergency" else name for name in table.names]
        writer.writerow(["stay", *header, OUTCOME])
        for i, (row, outcome) in enumerate(zip(table.X.tolist(), table.y.tolist(), strict=True)):
            cells = [_cell(name, value, i) for name, value in zip(table.names, row, strict=True)]
            writer.writerow([i + 1, *cells, WORDS[outcome]])
    return path


def _cell(name: str, value: float, i: int) -> str:
    if name == "emergency":
        return "emergency" if value else "planned"
    if name in _TRUTHS:
        return WORDS[int(value)]
    if name == "bmi" and i % _EMPTY_EVERY == 0:
        return ""
    return f"{value:g}"
