"""``Summary``: a model's effects with standard errors, as statsmodels and R show them. Post-processing of releases.

``summary_of`` goes from a fitted model to its summary: units, names, bases, and why there is none.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.accounting.certificate import Certificate, Checked, checked_in
from discreet.accounting.gaussian import epsilon_of, mu_of
from discreet.errors import Unsupported
from discreet.inference.columns import Blocks, ColumnEffects, index_of
from discreet.inference.estimate import UNSETTLED
from discreet.inference.intervals import COLUMNS as COLUMNS
from discreet.inference.intervals import Combinations, checked_level
from discreet.inference.limits import FORECAST
from discreet.inference.pictures import curve_picture, forest
from discreet.inference.text import (
    HEADINGS,
    NEAR_ONE,
    OTHER,
    Tabular,
    data_frames,
    grouped,
    hidden_text,
    notes_lines,
    number_text,
    plain_lines,
)
from discreet.inference.units import INTERCEPT, Structure, Units, intercept_name, numbers_of, own_units
from discreet.parameters import Positive, Share, checked
from discreet.solvers.base import Effects
from discreet.solvers.signal import PRIVATE_N
from discreet.typing import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from discreet.models.base import DPLinearModel
    from discreet.schema.schema import Schema

BROOM = {
    "coef": "estimate",
    "se": "std.error",
    "z": "statistic",
    "p": "p.value",
    "low": "conf.low",
    "high": "conf.high",
    "se_privacy": "std.error.privacy",
    "inflation": "inflation",
}


@dataclass(frozen=True, repr=False)
class Summary(Tabular, ColumnEffects):
    """Effects of a fitted model for a population, with standard errors that count sampling and privacy noise.

    Printing it shows a table; notebooks show it as HTML. An effect that noise hides has no number anywhere: NaN in
    arrays and frames, a dash in texts. A method's ``level`` is about how often an interval covers its effect, one by
    one; None: the summary's.

    Parameters
    ----------
    names : tuple of str
        The features, and ``intercept``; with three classes or more ``class: feature``.
    values : ndarray
        The coefficients in the units of the summary; NaN for hidden ones, whatever was passed.
    effects : Effects
        Their covariances; NaN for hidden ones.
    facts : dict
        What the heading says: the model, the target, the covariance, the budget.
    ratio : str
        What exp(coef) is: ``"odds ratio"``, ``"relative risk ratio"``, ``"rate ratio"``, or empty.
    level : float
        That of the intervals.
    blocks : tuple
        With three classes or more, the class and the feature of each coefficient: differences from the first class.
    structure : Structure, default=None
        The columns behind the coefficients. None: each feature is a column by itself.
    certificate : Certificate, default=None
        What the fit released, and at what price.
    cov_type : str
        Which covariance it is.
    reasons : dict
        Why each hidden effect is hidden, and what would help: by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = X @ [1.0, 0.0] + rng.normal(0, 0.5, 20_000)
    >>> model = DPLinearRegression(1.0, bounds=1.0, target=(-4, 4), inference="sandwich").fit(X, y)
    >>> summary = model.summary()
    >>> list(summary.frame.index), bool(summary.frame.low["x0"] < summary.frame.coef["x0"])
    (['x0', 'x1', 'intercept'], True)
    """

    names: tuple[str, ...]
    values: Floats
    effects: Effects
    facts: dict[str, str] = field(default_factory=dict)
    ratio: str = ""
    level: float = 0.95
    blocks: Blocks = ()
    structure: Structure = None  # type: ignore[assignment]  # stands for features that are columns by themselves
    certificate: Certificate | None = None
    cov_type: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    combinations: Combinations = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Blank hidden effects, so that every view of ``values`` and ``effects`` leaves them out.

        ``combinations`` keeps all numbers, for those combinations of effects that noise does not hide.
        """
        if self.structure is None:
            features = [name for _, name in self.blocks] or list(self.names)
            object.__setattr__(self, "structure", Structure.of_arrays(features, INTERCEPT))
        object.__setattr__(self, "combinations", Combinations(self.values, self.effects))
        object.__setattr__(self, "values", np.where(self.hidden, np.nan, self.values))
        object.__setattr__(self, "effects", self.effects.blanked(self.hidden))

    @property
    def frame(self) -> "pd.DataFrame":
        """The table: coef, se, se_privacy, z, p, low, high, inflation; by feature, or by class and feature."""
        pd = data_frames()
        return pd.DataFrame(self.columns(), index=index_of(self.names, self.blocks))

    def columns(self, level: float | None = None) -> dict[str, Floats]:
        """Return the table's columns as arrays.

        Parameters
        ----------
        level : float, default=None
            That of the intervals; None: the summary's.

        Returns
        -------
        dict
            Name -> one number per feature; NaN where noise hides an effect.

        Examples
        --------
        >>> summary.columns()["se"].shape
        (3,)
        """
        return self.combinations.columns(np.eye(len(self.names)), checked_level(self.level if level is None else level))

    def conf_int(self, level: float | None = None) -> "pd.DataFrame":
        """Return confidence intervals.

        Returns
        -------
        DataFrame
            ``low`` and ``high`` per feature.

        Examples
        --------
        >>> list(summary.conf_int(0.9).columns)
        ['low', 'high']
        """
        pd = data_frames()
        columns = self.columns(level)
        return pd.DataFrame({end: columns[end] for end in ("low", "high")}, index=index_of(self.names, self.blocks))

    def cov_params(self) -> "pd.DataFrame":
        """Return the covariance of the coefficients: sampling and every noise; NaN for hidden ones.

        Examples
        --------
        >>> summary.cov_params().shape
        (3, 3)
        """
        pd = data_frames()
        named = index_of(self.names, self.blocks) if self.blocks else list(self.names)
        return pd.DataFrame(self.effects.covariance, index=named, columns=named)

    def ratios(self, level: float | None = None) -> "pd.DataFrame":
        """Return odds ratios (logistic), relative risk ratios (softmax) or rate ratios (Poisson) with their intervals.

        Returns
        -------
        DataFrame
            ``ratio``, ``low`` and ``high`` per feature; intercepts and parts of smooth curves are no ratios.

        Raises
        ------
        Unsupported
            For models without a ratio, such as least squares.

        Examples
        --------
        >>> summary.ratios()
        Traceback (most recent call last):
        discreet.errors.Unsupported: this model's effects are differences, not ratios: see frame
        """
        pd = data_frames()
        if not self.ratio:
            raise Unsupported("this model's effects are differences, not ratios: see frame")
        columns, places = self.columns(level), self.structure.ratios
        ends = {"ratio": columns["coef"], "low": columns["low"], "high": columns["high"]}
        index = index_of(self.names, self.blocks)[places]
        return pd.DataFrame({name: np.exp(values[places]) for name, values in ends.items()}, index=index)

    def marginal_effects(self, level: float | None = None) -> "pd.DataFrame":
        """Return average marginal effects on the probability, for logistic models.

        The coefficient times the mean of p (1 - p), which was released. Its own error is left out of the standard
        errors: it is about 2 % at 20,000 records and epsilon 1, and falls in proportion to both.

        Returns
        -------
        DataFrame
            ``effect``, ``se``, ``low`` and ``high`` per feature.

        Raises
        ------
        Unsupported
            For models of numbers.

        Examples
        --------
        >>> summary.marginal_effects()
        Traceback (most recent call last):
        discreet.errors.Unsupported: average marginal effects are of logistic models: coefficients are effects here
        """
        pd = data_frames()
        if self.blocks:
            raise Unsupported("average marginal effects are of logistic models of two classes: see ratios()")
        if self.ratio != "odds ratio":
            raise Unsupported("average marginal effects are of logistic models: coefficients are effects here")
        columns, slopes = self.columns(level), self.structure.slopes
        shown = {"effect": "coef", "se": "se", "low": "low", "high": "high"}
        effects = {name: self.effects.mean_curvature * columns[source][slopes] for name, source in shown.items()}
        return pd.DataFrame(effects, index=pd.Index([self.names[j] for j in slopes], name="feature"))

    @checked
    def tidy(self, *, exponentiate: bool = False, level: Share | None = None) -> "pd.DataFrame":
        """Return one row per effect, with the column names of R's broom.

        Parameters
        ----------
        exponentiate : bool, default=False
            Whether estimates and their intervals are ratios; intercepts and parts of smooth curves are left out then,
            and standard errors and statistics stay those of the logarithms.
        level : float, default=None
            That of the intervals; None: the summary's.

        Returns
        -------
        DataFrame
            ``term``, ``estimate``, ``std.error``, ``statistic``, ``p.value``, ``conf.low``, ``conf.high``,
            ``std.error.privacy`` and ``inflation``; with several classes ``y.level`` first. NaN for hidden effects.

        Raises
        ------
        Unsupported
            If ratios are asked for, and the model has none.

        Examples
        --------
        >>> summary.tidy().term.tolist()
        ['x0', 'x1', 'intercept']
        """
        pd = data_frames()
        if exponentiate and not self.ratio:
            raise Unsupported("this model's effects are differences, not ratios: leave exponentiate out")
        columns, rows = self.columns(level), self.structure.ratios if exponentiate else slice(None)
        frame = pd.DataFrame({new: columns[old] for old, new in BROOM.items()})
        frame.insert(0, "term", [name for _, name in self.blocks] or list(self.names))
        if self.blocks:
            frame.insert(0, "y.level", [group for group, _ in self.blocks])
        if exponentiate:
            ends = ["estimate", "conf.low", "conf.high"]
            frame[ends] = np.exp(frame[ends])
        return frame.iloc[rows].reset_index(drop=True)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table as plain lists, for JSON; None for hidden effects.

        Returns
        -------
        dict
            ``feature``, and the columns of ``frame``.

        Examples
        --------
        >>> summary.to_dict()["feature"]
        ['x0', 'x1', 'intercept']
        """
        columns = {name: values.tolist() for name, values in self.columns().items()}
        finite = {name: [x if math.isfinite(x) else None for x in values] for name, values in columns.items()}
        return {"feature": list(self.names), **finite}

    def glance(self) -> "pd.DataFrame":
        """Return one row about the model: rows, budget, and a test of all shown effects at once.

        Returns
        -------
        DataFrame
            ``model``, ``nobs`` (where it is public; persons, where these are the unit), ``epsilon``, ``delta``,
            ``neighbors``, ``unit``, ``cov_type``, ``effects``, ``hidden`` (how many of them are), and Wald's
            ``statistic``, ``df`` and ``p.value`` of no effect at all.

        Examples
        --------
        >>> summary.glance()[["epsilon", "df"]].iloc[0].tolist()
        [1.0, 2.0]
        """
        pd = data_frames()
        certificate, slopes = self.certificate, self.structure.slopes
        hidden = self.hidden
        shown = [j for j in slopes if not hidden[j]]
        about: dict[str, Any] = {"model": self.facts.get("model", ""), "nobs": None}
        about |= dict.fromkeys(("epsilon", "delta"), math.nan) | dict.fromkeys(("neighbors", "unit"), "")
        if certificate is not None:
            about |= {
                "nobs": certificate.assumed_public.get("n"),
                "epsilon": certificate.epsilon,
                "delta": certificate.delta,
            }
            about |= {"neighbors": str(certificate.neighbors), "unit": certificate.unit}
        about |= {"cov_type": self.cov_type, "effects": len(slopes), "hidden": len(slopes) - len(shown)}
        try:
            test = self.wald_test(np.eye(len(self.names))[shown])
            about |= {"statistic": test.statistic, "df": test.df, "p.value": test.p}
        except Unsupported:
            about |= {"statistic": math.nan, "df": len(shown), "p.value": math.nan}
        frame = pd.DataFrame([about])
        return frame.astype({"nobs": "Int64", "df": "Int64"})

    @checked
    def epsilon_for(self, effect: str, *, standard_error: Positive) -> float:
        """Return about the epsilon at which a fit of as many rows, with the same delta, has this standard error.

        Sampling error stays, and privacy noise falls as the budget grows. Limits on far-out rows depend on noisy counts
        and on the budget, so that standard errors differ from fit to fit: plan with some room. This is for another
        study: a further fit on the same records adds to what this one has spent.

        Parameters
        ----------
        effect : str
            An effect, or a combination such as ``"a - b"``.
        standard_error : float
            What is wished for.

        Raises
        ------
        Unsupported
            If sampling error alone is larger, or noise hides the effect.

        Examples
        --------
        >>> summary.epsilon_for("x0", standard_error=0.95 * summary.frame.se["x0"]) > 1
        True
        """
        certificate = self.certificate
        if certificate is None or not (0 < certificate.epsilon < math.inf and certificate.delta > 0):
            raise Unsupported("epsilon_for needs a summary of a private fit")
        if not 0 < standard_error < math.inf:
            raise Unsupported("standard_error must be positive, such as 0.05")
        row = self.combination(effect)
        se, sampling = (float(part(row)[0]) for part in (self.combinations.deviations, self.combinations.sampling))
        if math.isnan(se):
            raise Unsupported(
                f"noise hides {effect}: this fit does not say what epsilon it needs; see forecast_effects()"
            )
        if standard_error <= sampling:
            times = (sampling / standard_error) ** 2
            raise Unsupported(
                f"no epsilon has a standard error of {standard_error:g} for {effect} with these rows: sampling alone "
                f"has about {sampling:.2g}; more than {times:.2g} times as many rows may have it"
            )
        factor = math.sqrt(max(se**2 - sampling**2, 0.0) / (standard_error**2 - sampling**2))
        return epsilon_of(mu_of(certificate.epsilon, certificate.delta) * factor, certificate.delta)

    @checked
    def combination(self, effect: str) -> Floats:
        """Return an effect or a combination such as ``"a - b"`` as weights of the coefficients.

        Parameters
        ----------
        effect : str
            As in ``contrast``.

        Examples
        --------
        >>> summary.combination("x0 - x1").tolist()
        [[1.0, -1.0, 0.0]]
        """
        return self._vocabulary.combination(effect)[None, :]

    def plot(self, column: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw a forest plot of the effects, or the curve of a column with knots. Needs ``discreet[plot]``.

        Parameters
        ----------
        column : str, default=None
            A column with knots, whose curve is drawn with a band; None: all effects with their intervals, ratios on a
            logarithmic scale, a dash for hidden ones.
        ax : matplotlib Axes, default=None
            Where to draw; None: on a new figure.

        Raises
        ------
        Unsupported
            If matplotlib is not installed, or the column has no knots.

        Examples
        --------
        >>> [label.get_text() for label in summary.plot().get_yticklabels()]
        ['x0', 'x1']
        """
        return forest(self, ax) if column is None else curve_picture(self, column, ax)

    def interval(self, rows: Floats, level: float | None = None) -> tuple[Floats, Floats, Floats]:
        """Return linear combinations of the coefficients with their intervals.

        Parameters
        ----------
        rows : array of shape (k, n_features)
            One combination per row, in the order of ``names``.
        level : float, default=None
            That of the intervals; None: the summary's.

        Examples
        --------
        >>> import numpy as np
        >>> [end.shape for end in summary.interval(np.eye(3))]
        [(3,), (3,), (3,)]
        """
        return self.combinations.interval(rows, checked_level(self.level if level is None else level))

    @property
    def notes(self) -> Mapping[str, str]:  # type: ignore[override]
        """What the heading says, and why effects are hidden."""
        return self.facts | ({"hidden": hidden_text(self.reasons)} if self.hidden.any() else {})

    def cells(self) -> list[list[str]]:
        """Return the table as texts, the headings first.

        Examples
        --------
        >>> summary.cells()[0][:2]
        ['feature', 'coef']
        """
        columns, ratios = self.columns(), self.structure.ratios if self.ratio else ()
        ends = {"low": f"[{(1 - self.level) / 2:.3g}", "high": f"{(1 + self.level) / 2:.3g}]"}
        rows = [["feature", *({**HEADINGS, **ends}.get(name, name) for name in columns)]]
        rows += [
            [name, *(number_text(column, float(values[i])) for column, values in columns.items())]
            for i, name in enumerate(self.names)
        ]
        if self.ratio:  # an intercept has none
            rows[0].append(self.ratio)
            for i, row in enumerate(rows[1:]):
                row.append(number_text(self.ratio, float(np.exp(self.values[i]))) if i in ratios else "")
        return rows

    def __str__(self) -> str:
        lines = plain_lines(self.cells())
        rule = "=" * max(*map(len, lines), 20)
        notes = notes_lines(self.notes, len(rule))
        return "\n".join([rule, *notes, rule, lines[0], rule.replace("=", "-"), *lines[1:], rule])


CAUTION = (
    "Do not trust effects on counts that have extreme values or are strongly overdispersed, nor effects in a model "
    "that is misspecified where columns take extreme values: such rows count less, which changes what is estimated. "
    "See docs/inference.md, When not to trust it."
)
"""When effects are not to be trusted: the first words of every summary, of the report's effects and of the page."""
PRIVATE_ROWS = (
    f"Their number is private, and limits are those of {PRIVATE_N:,} rows: intervals may be too short. If the number "
    "is public, declare it"
)
EMPTY_CELL, RARE_CELL, DETERMINED = 0.01, 0.1, 0.97
"""Shares of rows below which a cell is empty and rare, and the R2 from which others nearly determine a column."""
MANY = 0.1
"""A part of a column's cells that do not fit the schema is spoken of from here on."""
TOLD, NAMED = 0.02, 4
"""A part of a variance that allows for bias is spoken of from here on, of at most so many effects by name."""


class MeanInterval(NamedTuple):
    """Predicted means with intervals: for the mean of all records with these features, not for one record.

    Parameters
    ----------
    mean, low, high : ndarray
        One number per row, on the scale of the target (probabilities for classes).

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import MeanInterval
    >>> MeanInterval(np.array([0.5]), np.array([0.4]), np.array([0.6])).low
    array([0.4])
    """

    mean: Floats
    low: Floats
    high: Floats


def summary_of(model: "DPLinearModel", level: float, schema: "Schema | None" = None) -> Summary:
    """Return the summary of a fitted model, in the columns' own units where there is a schema."""
    reason = why_not(model)
    if reason is not None:
        raise Unsupported(reason)
    slope, intercept = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)
    columns = np.vstack([slope, intercept]) if model.fit_intercept else slope
    assert model.effects_ is not None
    units, released, folded = _arrays(model), ReleasedColumns.of(model), list[str]()
    if schema is not None:
        released = released.with_numbers(numbers_of(schema))
        units = own_units(schema, fit_intercept=model.fit_intercept)
        folded = _empty_cells(units, model.effects_, released)
        units = units.without(folded)
    names, structure = list(units.names), units.structure
    shown, effects = units.matrix @ columns, model.effects_.through(units.matrix)
    blocks: Blocks = ()
    if columns.shape[1] > 1:
        blocks = tuple((str(label), name) for label in model.classes_[1:] for name in names)
        structure = structure.repeated(columns.shape[1] - 1)
        shown, names = shown[:, 1:] - shown[:, :1], [f"{label}: {name}" for label, name in blocks]
    about = (_facts(model), _ratio(model), level, blocks, structure, model.certificate_, str(model.cov_type))
    summary = Summary(tuple(names), shown.T.ravel(), effects, *about)
    checks = checked_in(model.certificate_.assumed_public, model.certificate_.unit)
    bent = {*structure.slopes} - {*structure.ratios}
    reasons = {
        names[j]: _mismatch(checks, [column for column, _ in structure.terms[j]])
        or (BENT if j in bent else released.reason(units.places[j % len(units.names)]))
        for j in range(len(names))
        if summary.hidden[j]
    }
    summary = replace(summary, values=shown.T.ravel(), effects=effects, reasons=reasons)
    summary.facts.update(_bias(names, summary.effects))
    summary.facts.update(_small_units(summary))
    misfits = [checks.mismatch(name, MANY) for name in schema.columns] if checks and schema else []
    if misfits := list(filter(None, misfits)):
        summary.facts["schema"] = f"{'; '.join(misfits)}: effects are of what the schema makes of these cells"
    if folded:
        summary.facts["folded"] = f"{', '.join(folded)}: below 1% of rows, without a line of their own"
    hidden = summary.hidden[structure.slopes or slice(None)]
    if hidden.all():
        if wrong := _mismatch(checks, [schema.target.column] if schema and schema.target else []):
            raise Unsupported(f"No standard errors can be given: {wrong}. The budget was spent")
        raise Unsupported(
            f"No standard errors can be given: every effect is hidden ({'; '.join(grouped(reasons))}). "
            "The budget was spent. For another fit, use more rows, fewer columns, narrower ranges or a larger epsilon"
            f"{'' if blocks else f' ({FORECAST})'}"
        )
    return summary


def _mismatch(checks: Checked | None, columns: Sequence[str]) -> str:
    """Return which of these columns does not fit the schema in most rows, and what would help; "" for none."""
    wrong = [] if checks is None else list(filter(None, map(checks.mismatch, columns)))
    return f"{wrong[0]}: correct the schema, or the table" if wrong else ""


def _small_units(summary: Summary) -> dict[str, str]:
    """Return which ratios are so near to 1 that a larger unit would show them better, and one that would."""
    if not summary.ratio:
        return {}
    low, high = summary.columns()["low"], summary.columns()["high"]
    units = dict[str, float]()
    for j in summary.structure.ratios:
        farthest = max(abs(low[j]), abs(high[j]))
        if 0 < farthest < NEAR_ONE:
            units[summary.names[j]] = 10.0 ** math.floor(-math.log10(farthest))
    if not units:
        return {}
    some = ", ".join(f"{name} = {unit:g}" for name, unit in units.items())
    return {"units": f"these {summary.ratio}s are near 1 for a difference of 1: declare a larger unit, such as {some}"}


BENT = "too little is known of this part of the curve: use fewer knots, more rows or a larger epsilon"
"""Why a bend is hidden: it is no value of its own, which few rows might have."""


@dataclass(frozen=True)
class ReleasedColumns:
    """What a fit released of its encoded columns: the share of rows of each cell, and how well others predict it (R2).

    The inverse of ``Effects.metric`` is the noisy second moment of the rows, up to a factor, with the constant last:
    means, variances and R2 follow from it. NaN where a column has other values than 0 and 1, or there is no constant.
    ``astray`` are columns whose effects far-out rows may have moved farther than their standard errors tell, ``flat``
    those that are constant as far as the noise tells.
    """

    shares: Floats
    predicted: Floats
    astray: "NDArray[np.bool_]"
    flat: "NDArray[np.bool_]"

    @classmethod
    def of(cls, model: "DPLinearModel") -> "ReleasedColumns":
        """Return them for a fit with inference; of three classes or more, the first block has all columns."""
        assert model.effects_ is not None
        columns = np.atleast_2d(model.coef_).shape[1]
        effects = model.effects_
        astray = np.diag(effects.bias)[:columns] > UNSETTLED**2 * np.diag(effects.covariance - effects.bias)[:columns]
        if not model.fit_intercept:
            return cls(np.full(columns, np.nan), np.zeros(columns), astray, np.zeros(columns, dtype=bool))
        metric = model.effects_.metric[: columns + 1, : columns + 1]
        second = np.linalg.pinv(metric, hermitian=True)
        level = max(float(second[-1, -1]), 1e-300)
        means = second[:-1, -1] / level
        variances = np.maximum(np.diag(second)[:-1] / level - np.square(means), 1e-300)
        spread = np.maximum(means * (1.0 - means), 0.0)
        two_valued = (variances > 0.5 * (spread - 2.0 * EMPTY_CELL)) & (variances < 2.0 * (spread + EMPTY_CELL))
        alone = np.maximum(level * variances * np.diag(metric)[:-1], 1.0)
        shares = np.where(two_valued, np.maximum(means, 0.0), np.nan)
        return cls(shares, 1.0 - 1.0 / alone, astray, variances < EMPTY_CELL)

    def with_numbers(self, numbers: Sequence[bool]) -> "ReleasedColumns":
        """Return the same where these columns are numbers: no share of rows has one."""
        return replace(self, shares=np.where(numbers, np.nan, self.shares))

    def reason(self, places: Sequence[int]) -> str:
        """Return why noise hides the effect of some columns' product, and what would help."""
        shares = self.shares[list(places)]
        share = 1.0 if np.isnan(shares).all() else float(np.nanmin(shares))  # numbers have none
        if share < RARE_CELL:
            few = "below 1%" if share < EMPTY_CELL else f"about {share:.0%}"
            return f"too few rows have it ({few}): merge it with another value, or use more rows or a larger epsilon"
        if any(self.flat[j] and np.isnan(self.shares[j]) for j in places):
            return "it hardly varies within its declared range: declare a narrower range, or leave it out"
        if any(self.astray[j] for j in places):
            return (
                "rows far out in it may decide it, and count less: declare a narrower range, take its logarithm, or use"
                " Huber's loss"
            )
        if any(self.predicted[j] > DETERMINED for j in places):
            return "other columns nearly determine it: leave one of them out"
        return "the privacy noise is too large for it: use more rows, a larger epsilon or fewer columns"


def _empty_cells(units: Units, effects: Effects, released: ReleasedColumns) -> list[str]:
    """Return hidden cells for other values that about no row is in, with their products."""
    blocks = effects.through(units.matrix)
    hidden = Combinations(np.zeros(len(blocks.metric)), blocks).hidden(np.eye(len(blocks.metric)))
    gone = [bool(column.all()) for column in hidden.reshape(-1, len(units.names)).T]
    return [
        name
        for name, places, is_hidden in zip(units.names, units.places, gone, strict=True)
        if is_hidden and OTHER in name and np.nanmin([1.0, *released.shares[list(places)]]) < EMPTY_CELL
    ]


def why_not(model: Any) -> str | None:
    """Return why a fitted model has no summary, and what would help; None where it has one."""
    effects = getattr(model, "effects_", None)
    if effects is None:
        if getattr(model, "penalty", None) == "l1" or not hasattr(model, "inference"):
            return (
                "this model's effects have no standard errors: a penalty with corners moves them to 0, and a hinge has "
                "no likelihood; use DPLinearRegression, DPRidge, DPHuberRegressor, DPPoissonRegressor or "
                "DPLogisticRegression with inference='sandwich'"
            )
        return (
            "nothing was reserved for standard errors: fit again with inference='sandwich' (discreet fit --inference "
            "sandwich); intervals() of an estimator, or discreet inspect, shows what the privacy noise alone did"
        )
    return None


def mean_interval(model: "DPLinearModel", X: Floats, level: float, offsets: Floats) -> MeanInterval:
    """Return predicted means of encoded, clipped rows, with intervals."""
    summary = summary_of(model, level)
    if summary.blocks:
        raise Unsupported("predicted means have intervals for numbers and two classes: see summary() for effects")
    rows = np.hstack([X, np.ones((len(X), 1))]) if model.fit_intercept else X
    ratio = _ratio(model)
    mean = rows @ np.append(np.ravel(model.coef_), np.ravel(model.intercept_) if model.fit_intercept else [])
    ends = tuple(end + offsets for end in (mean, *summary.interval(rows)[1:]))
    if ratio == "odds ratio":
        return MeanInterval(*(1.0 / (1.0 + np.exp(-end)) for end in ends))
    return MeanInterval(*(np.exp(end) if ratio else end for end in ends))


def _arrays(model: Any) -> Units:
    named = getattr(model, "feature_names_in_", None)
    count = model.n_features_in_
    names = [str(name) for name in named] if named is not None else [f"x{j}" for j in range(count)]
    intercept = intercept_name(names) if model.fit_intercept else None
    names += [] if intercept is None else [intercept]
    places = (*((j,) for j in range(count)), *[()] * model.fit_intercept)
    return Units(tuple(names), np.eye(len(names)), Structure.of_arrays(names, intercept), places)


def _ratio(model: Any) -> str:
    loss = model._facts()[1]
    if loss.softmax_link:
        return "relative risk ratio"
    return "odds ratio" if loss.sigmoid_link else "rate ratio" if loss.log_link else ""


def _facts(model: Any) -> dict[str, str]:
    certificate = model.certificate_
    budget = f"epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.3g}, {certificate.neighbors}"
    return {
        "caution": CAUTION,
        "model": type(model).__name__,
        "covariance": f"{model.cov_type}: sampling and privacy noise, sandwich",
        "guarantee": budget,
        "target": _target(model),
        **({"classes": f"log odds against {model.classes_[0]}"} if model._facts()[1].softmax_link else {}),
        **_weights(model.effects_),
        **({} if "n" in certificate.assumed_public else {"rows": PRIVATE_ROWS}),
    }


def _bias(names: list[str], effects: Effects) -> dict[str, str]:
    """Name the effects whose standard errors allow for what weights may do to them."""
    parts = np.diag(effects.bias) / np.maximum(np.diag(effects.covariance), 1e-300)
    longest = [name for name, part in sorted(zip(names, parts, strict=True), key=lambda pair: -pair[1]) if part > TOLD]
    if not longest:
        return {}
    more = f" and {len(longest) - NAMED} more" if len(longest) > NAMED else ""
    said = "Standard errors allow for bias by limits on far-out rows and residuals"
    return {"bias": f"{said} ({', '.join(longest[:NAMED])}{more})"}


def _target(model: Any) -> str:
    """Name what is estimated: the plain model's coefficients, or those of one in which some rows count less."""
    name = "least squares" if model._facts()[1].quadratic else "the population's unpenalized coefficients"
    effects, clipped = model.effects_, "for records clipped to their declared ranges"
    if not effects.far + effects.cut > 0:
        return f"{name}, {clipped}"
    return f"bounded-influence regression: {name}, {clipped}, where about {_few_rows(effects)} count less"


def _few_rows(effects: Effects) -> str:
    """Say how many rows count less than others, by noisy counts."""
    far = f"{effects.far:.1%} of rows (over {effects.reach:.2g} times the typical size)" if effects.far > 0 else ""
    cut = f"{effects.cut:.2%} of residuals" if effects.cut > 0 else ""
    return " and ".join(filter(None, (far, cut)))


def _weights(effects: Effects) -> dict[str, str]:
    """Say what it means that rows count less than others, where some do."""
    if not effects.far > 0:
        return {}
    meaning = (
        f"Unusual rows (over {effects.reach:.2g} times the typical size) are down-weighted; if the model is "
        "misspecified, results differ from an unweighted fit"
    )
    return {"weights": meaning}


def shown_effects(model: Any) -> "Summary | str | None":
    """Return a fitted model's effects, or why there are none; None where the fit reserved nothing for them.

    Where there are effects, coefficients are not shown next to them: there is one number per effect, and none for
    those that noise hides.
    """
    if getattr(getattr(model, "estimator_", model), "effects_", None) is None:
        return None
    try:
        summary: Summary = model.summary()
    except Unsupported as reason:
        return str(reason)
    return summary
