"""``Summary``: a model's effects with standard errors, as statsmodels and R show them. Post-processing of releases."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.errors import Unsupported
from discreet.models.inference.column_effects import ColumnEffects
from discreet.models.inference.combinations import COLUMNS as COLUMNS
from discreet.models.inference.combinations import Combinations
from discreet.models.inference.frames import epsilon_for, glance, tidy
from discreet.models.inference.grid import data_frames
from discreet.models.inference.hypotheses import Blocks, index_of
from discreet.models.inference.pictures import curve_picture, forest
from discreet.models.inference.quantiles import checked_level
from discreet.models.inference.structure import Structure
from discreet.models.inference.text import TableText
from discreet.models.inference.units import INTERCEPT
from discreet.parameters import Positive, Share, checked
from discreet.solvers.base import Effects
from discreet.typing import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Summary(ColumnEffects):
    """Effects of a fitted model for a population, with standard errors that count sampling and privacy noise.

    Printing it shows a table; notebooks show it as HTML. An effect that noise hides has no number anywhere: NaN in
    arrays and frames, a dash in texts.

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

        Parameters
        ----------
        level : float, default=None
            About how often an interval covers its effect, one by one. None: the summary's.

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

        found = self.columns(level)
        return pd.DataFrame({end: found[end] for end in ("low", "high")}, index=index_of(self.names, self.blocks))

    def cov_params(self) -> "pd.DataFrame":
        """Return the covariance of the coefficients: sampling and every noise; NaN for hidden ones.

        Returns
        -------
        DataFrame
            Square, by feature.

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

        Parameters
        ----------
        level : float, default=None
            That of the intervals; None: the summary's.

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
        found, places = self.columns(level), self.structure.ratios
        made = {"ratio": found["coef"], "low": found["low"], "high": found["high"]}
        index = index_of(self.names, self.blocks)[places]
        return pd.DataFrame({name: np.exp(values[places]) for name, values in made.items()}, index=index)

    def marginal_effects(self, level: float | None = None) -> "pd.DataFrame":
        """Return average marginal effects on the probability, for logistic models.

        The coefficient times the mean of p (1 - p), which was released. Its own error is left out of the standard
        errors: it is about 2 % at 20,000 records and epsilon 1, and falls in proportion to both.

        Parameters
        ----------
        level : float, default=None
            That of the intervals; None: the summary's.

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
        found, slopes = self.columns(level), self.structure.slopes
        shown = {"effect": "coef", "se": "se", "low": "low", "high": "high"}
        made = {name: self.effects.mean_curvature * found[source][slopes] for name, source in shown.items()}
        return pd.DataFrame(made, index=pd.Index([self.names[j] for j in slopes], name="feature"))

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
        return tidy(self, level, exponentiate=exponentiate)

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
        return glance(self)

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

        Returns
        -------
        float
            The epsilon.

        Raises
        ------
        Unsupported
            If sampling error alone is larger, or noise hides the effect.

        Examples
        --------
        >>> summary.epsilon_for("x0", standard_error=0.95 * summary.frame.se["x0"]) > 1
        True
        """
        return epsilon_for(self, effect, standard_error)

    @checked
    def combination(self, effect: str) -> Floats:
        """Return an effect or a combination such as ``"a - b"`` as weights of the coefficients.

        Parameters
        ----------
        effect : str
            As in ``contrast``.

        Returns
        -------
        ndarray of shape (1, n_features)
            For ``interval``.

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

        Returns
        -------
        matplotlib Axes
            With the picture.

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

        Returns
        -------
        tuple of ndarray
            Values, lower and upper ends.

        Examples
        --------
        >>> import numpy as np
        >>> [end.shape for end in summary.interval(np.eye(3))]
        [(3,), (3,), (3,)]
        """
        return self.combinations.interval(rows, checked_level(self.level if level is None else level))

    @property
    def _text(self) -> TableText:
        found = self.columns()
        extra = {self.ratio: {j: float(np.exp(self.values[j])) for j in self.structure.ratios}} if self.ratio else {}
        return TableText(self.names, found, extra, self.facts, self.level, self.hidden.tolist())

    def cells(self) -> list[list[str]]:
        """Return the table as texts, the headings first.

        Returns
        -------
        list of list of str
            One list per row.

        Examples
        --------
        >>> summary.cells()[0][:2]
        ['feature', 'coef']
        """
        return self._text.rows()

    def __str__(self) -> str:
        return self._text.plain()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_markdown(self) -> str:
        """Return the table in Markdown.

        Returns
        -------
        str
            A table with pipes.

        Examples
        --------
        >>> summary.to_markdown().startswith("| feature | coef |")
        True
        """
        return self._text.markdown()

    def to_latex(self) -> str:
        r"""Return the table in LaTeX, as a ``tabular``.

        Returns
        -------
        str
            Needs no package.

        Examples
        --------
        >>> summary.to_latex().startswith(r"\begin{tabular}")
        True
        """
        return self._text.latex()

    def to_html(self) -> str:
        """Return the table in HTML, names escaped.

        Returns
        -------
        str
            A ``table`` element.

        Examples
        --------
        >>> summary.to_html().startswith("<table>")
        True
        """
        return self._text.html()
