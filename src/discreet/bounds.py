"""What is publicly known of the data: ``Bounds``, as declared; ``Domain``, as training sees it.

Nothing here reads a record. Ranges, classes and n are declared by a person who knows them from
elsewhere (a codebook, physics, policy) and are enforced by clipping; they are never measured.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from discreet.budget import Neighbors
from discreet.errors import MissingBounds
from discreet.json_schemas import Json
from discreet.parameters import Finite, Rows, conforms
from discreet.typing import Floats

Range = tuple[float, float]
FeatureBounds = float | Sequence[Range] | Mapping[str, Range]

_HOW_FEATURES = (
    "declare what is publicly known, for example Bounds(features=1.0), Bounds(features=[(0, 120), (0, 1)]) "
    "or Bounds(features={'age': (0, 120)})"
)


def _checked_range(pair: Any, what: str) -> Range:
    if type(pair) is tuple and [*map(type, pair)] == [float, float] and -np.inf < pair[0] <= pair[1] < np.inf:
        return pair  # as most are, and the features of curves are hundreds
    if not conforms(pair, tuple[Finite, Finite]) or not pair[0] <= pair[1]:
        raise MissingBounds(f"{what} needs a finite range (low, high) with low <= high")
    return float(pair[0]), float(pair[1])


@dataclass(frozen=True)
class Bounds:
    """Declared, public facts about a data set.

    Parameters
    ----------
    features : float, list of tuple, or dict
        The range of every feature: one number b for (-b, b) everywhere, a list of (low, high), or a
        dictionary from column name to (low, high) for data frames. Values outside are clipped. In training
        coordinates a feature is divided by its largest magnitude; where its range leaves out 0, it is taken from
        the middle and divided by half the width (with an intercept, and neither ``row_norm`` nor a global scale).
    row_norm : float, default=None
        A bound on the Euclidean norm of a record in training coordinates (each feature divided by
        its own bound, the intercept's constant not counted). Longer records are shrunk onto it.
    target : tuple of float, default=None
        The range (low, high) of a numeric target. Values outside are clipped.
    classes : tuple, default=None
        The labels of a classification target, in order. A record with another label counts as null.
    n : int, default=None
        The number of records (of persons, with ``groups``), where it is public but must not be read.
    scale : {"feature", "global"}, default="feature"
        ``"feature"`` divides each feature by its own bound; ``"global"`` divides all by the largest,
        which keeps the raw geometry.
    weights : float or tuple of float, default=None
        The largest weight of a record, or the range (low, high) of weights, where records are weighted. Weights outside
        are clipped. A record's part of the noise-free sum is its weight over the largest one.
    offsets : tuple of float, default=None
        The range (low, high) of offsets, which are added to the linear predictor. Offsets outside are clipped.

    Examples
    --------
    >>> from discreet import Bounds
    >>> bounds = Bounds(features={"age": (18, 110), "bmi": (10, 70)}, classes=(0, 1))
    >>> bounds.features["age"]
    (18.0, 110.0)
    """

    features: FeatureBounds
    row_norm: float | None = None
    target: Range | None = None
    classes: tuple[Any, ...] | None = None
    n: int | None = None
    scale: str = "feature"
    weights: Range | None = None
    offsets: Range | None = None

    def __post_init__(self) -> None:
        if self.features is None:
            raise MissingBounds(f"the ranges of the features are not declared: {_HOW_FEATURES}")
        if isinstance(self.features, Mapping):
            named = {str(name): _checked_range(pair, f"feature {name!r}") for name, pair in self.features.items()}
            object.__setattr__(self, "features", named)
        elif isinstance(self.features, Real):
            if not (conforms(self.features, Finite) and float(self.features) > 0):
                raise MissingBounds(f"a common feature bound must be positive and finite: {_HOW_FEATURES}")
            object.__setattr__(self, "features", float(self.features))
        elif isinstance(self.features, str) or not isinstance(self.features, Iterable):
            raise MissingBounds(f"the ranges of the features are no numbers: {_HOW_FEATURES}")
        else:
            ranges = tuple(_checked_range(pair, f"feature {j}") for j, pair in enumerate(self.features))
            object.__setattr__(self, "features", ranges)
        if self.row_norm is not None and not (conforms(self.row_norm, Finite) and self.row_norm > 0):
            raise MissingBounds("row_norm must be positive and finite, or None for what the ranges imply")
        if self.target is not None:
            object.__setattr__(self, "target", _checked_range(self.target, "the target"))
        if self.classes is not None:
            try:
                classes = tuple(label.item() if isinstance(label, np.generic) else label for label in self.classes)
                different = len({label for label in classes if label == label})
            except (TypeError, ValueError):
                classes, different = (), 0
            if len(classes) < 2 or different != len(classes):
                raise MissingBounds("classes must name at least two different labels, such as classes=(0, 1)")
            object.__setattr__(self, "classes", classes)
        if self.weights is not None:
            ends = (0.0, self.weights) if isinstance(self.weights, Real) else self.weights
            low, high = _checked_range(ends, "a weight")
            if low < 0 or high <= 0:
                raise MissingBounds("weights are not negative, and the largest is positive: declare weights=(0, 20)")
            object.__setattr__(self, "weights", (low, high))
        if self.offsets is not None:
            object.__setattr__(self, "offsets", _checked_range(self.offsets, "an offset"))
        if not conforms(self.n, Rows | None):
            raise MissingBounds("n must be a positive whole number, or None")
        if not conforms(self.scale, Literal["feature", "global"]):
            raise MissingBounds("scale must be 'feature' (each feature divided by its own bound) or 'global'")

    def ranges(self, n_columns: int, names: Sequence[str] | None = None) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound of each column, in the columns' order.

        Parameters
        ----------
        n_columns : int
            The number of columns.
        names : sequence of str, default=None
            Their names, where bounds are declared by name.

        Raises
        ------
        MissingBounds
            If a column has no declared range.

        Examples
        --------
        >>> bounds.ranges(2, ["bmi", "age"])
        (array([10., 18.]), array([ 70., 110.]))
        """
        if isinstance(self.features, float):
            return np.full(n_columns, -self.features), np.full(n_columns, self.features)
        if isinstance(self.features, Mapping):
            if names is None:
                raise MissingBounds(
                    "bounds are declared by column name, but the data has none: pass a data frame, or a list of ranges"
                )
            missing = [str(name) for name in names if str(name) not in self.features]
            if missing:
                raise MissingBounds(f"no range is declared for column(s) {', '.join(missing)}: {_HOW_FEATURES}")
            pairs = [self.features[str(name)] for name in names]
        else:
            pairs = list(self.features)
            if len(pairs) != n_columns:
                raise MissingBounds(
                    f"{len(pairs)} feature ranges are declared for {n_columns} columns: {_HOW_FEATURES}"
                )
        table = np.array(pairs, dtype=np.float64).reshape(n_columns, 2)
        return table[:, 0].copy(), table[:, 1].copy()

    def to_dict(self) -> Json:
        """Return the declared facts in plain types, those that were not declared left out: for certificates.

        Examples
        --------
        >>> Bounds(1.0, n=100).to_dict()
        {'features': 1.0, 'n': 100, 'scale': 'feature'}
        """
        facts = {item.name: getattr(self, item.name) for item in fields(self)}
        if isinstance(self.features, tuple):
            facts["features"] = [list(pair) for pair in self.features]
        return {name: value for name, value in facts.items() if value is not None}

    def with_facts(self, **facts: Any) -> "Bounds":
        """Return a copy with some facts replaced.

        Examples
        --------
        >>> bounds.with_facts(n=1000).n
        1000
        """
        return replace(self, **facts)


def target_place(ends: Range, *, moves: bool) -> tuple[float, float]:
    """Return the center and the scale of a numeric target in training coordinates, from its declared range.

    A range that leaves out 0 (years, prices from 100 to 110) is centered at its middle where the target ``moves``: the
    loss is one of residuals, and an intercept takes the center back. Privacy: a map of one record by declared numbers.
    """
    low, high = ends
    if moves and high > low and (low > 0 or high < 0):
        middle = low + (high - low) / 2.0
        return middle, max(high - middle, middle - low)
    return 0.0, max(abs(low), abs(high)) or 1.0


def refuse_negative_counts(ends: Range) -> None:
    """Refuse a range with negative numbers for a log link: the bounds on slopes are for targets from 0 on."""
    if ends[0] < 0:
        raise MissingBounds("counts and amounts are not negative: declare a target range such as target=(0, 100)")


@dataclass(frozen=True)
class Typical:
    """What was estimated privately of recoded records, so that solvers need not assume the worst.

    ``norm`` is a typical row's length (None without noise, where no clip may bite), ``moment`` about the largest
    eigenvalue of the rows' second moment, ``squares`` its diagonal; where these are bounds, ``likely`` is what the
    diagonal would be if columns were alike, for steps that find out by themselves.
    """

    norm: float | None
    moment: float
    squares: Floats = field(repr=False)
    likely: Floats | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Moments:
    """Public means and standard deviations of the features in training coordinates, and a covariance where given."""

    mean: Floats = field(repr=False)
    scale: Floats = field(repr=False)
    covariance: Floats | None = field(default=None, repr=False)


SHRUNK = 1 - 1e-9
"""A row norm below this part of what the ranges imply was declared, and shrinks rows; above is rounding."""


@dataclass(frozen=True)
class Domain:
    """What is public of the records in training coordinates. Solvers know nothing else of the data.

    ``feature_bounds[j]`` bounds |x_j|, ``row_norm`` bounds the norm of a whole record; both count the
    intercept's constant feature, which is the last column where ``intercept`` is true. ``n`` is None
    where it is private (``add_remove`` without a declared n). ``ranges`` are the features' declared ranges, one row
    (low, high) each, and ``target_range`` a numeric target's, where these are known; ``sparse`` says how the records
    are stored, ``grouped`` whether a person may have several rows and ``remote`` whether they are on other machines:
    facts of their containers; ``weighted`` says that records have weights, at most 1 in training coordinates.
    ``indicators`` are the columns of which at most one is on in a row, where they are declared to be cells.
    ``typical`` is what was released of recoded records, ``start`` the public point that steps start from
    (``starting_point``), ``moments`` the features' public means and scales (``public_moments``), ``count`` a noisy
    count, or sum of weights, that was released.
    """

    feature_bounds: Floats = field(repr=False)
    row_norm: float
    n: int | None
    neighbors: Neighbors
    intercept: bool = True
    n_outputs: int = 1
    target_bound: float = 1.0
    ranges: Floats | None = field(default=None, repr=False)
    target_range: Range | None = None
    sparse: bool = False
    grouped: bool = False
    remote: bool = False
    weighted: bool = False
    indicators: tuple[tuple[int, ...], ...] = ()
    typical: Typical | None = None
    start: Floats | None = field(default=None, repr=False)
    moments: Moments | None = field(default=None, repr=False)
    count: float | None = None

    @property
    def n_features(self) -> int:
        """Columns in training coordinates, the intercept's among them."""
        return len(self.feature_bounds)

    @property
    def places(self) -> Floats | None:
        """Where features are, as ``ranges``: a row that ``row_norm`` shrinks leaves them toward 0."""
        if self.ranges is None or self.row_norm >= SHRUNK * float(np.linalg.norm(self.feature_bounds)):
            return self.ranges
        low, high = self.ranges.T
        return np.stack([np.minimum(low, 0.0), np.maximum(high, 0.0)], axis=1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the coefficients: (p,) or (p, K)."""
        return (self.n_features,) if self.n_outputs == 1 else (self.n_features, self.n_outputs)

    @property
    def starting_point(self) -> Floats:
        """The coefficients that steps start from: as given, else zeros. Public or released, so free."""
        return np.zeros(self.shape) if self.start is None else np.array(self.start)
