"""The terms of a fitted table model: the effect of each column over its declared values, and of each term on one row.

The linear predictor of a row is a level plus one number per term, a term being a column or a product of columns. The
effect of a column is against its mean over the declared range, all of it alike, or over the declared names; that of a
product is as it is. All of this is computed from released coefficients and declared facts, and for one row from what
the caller gives: nothing is read of the records of the fit.

**What is drawn.** The effect of a cell that no row has, such as that of other names, is noise alone. Which cells these
are is private; how much noise there is tells. Where its variance v is above both

    x    how large squares of effects mostly are: the solution of mean (effect^2 / (x + v)) = 1, each column alike
    y    FAR^2 times the median of columns' first quartiles of v

pictures leave a cell out, and compare the others with their own mean: that of all would lend them its noise. For x and
v cells are compared with the mean that noise moves least. Where noise may explain all effects (no x above 0 solves
that) bands say so, and nothing is left out.

The noise of an effect is a sum over coefficients. Where values crowd a part of a range, features of one curve repeat
each other there and have noises that offset each other: a fit in estimated coordinates knows by how much, by released
values alone. Elsewhere, and between columns, noises are taken for independent.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator import Layout
from discreet.errors import Unsupported
from discreet.inference.intervals import INTERCEPT, LEVEL, Combinations, deviations
from discreet.inference.pictures import curve_picture
from discreet.json_schemas import Json
from discreet.models.base import DPLinearModel
from discreet.models.export import OTHER_TEXT, encoded_cells
from discreet.parameters import Share, checked
from discreet.schema.cell_meaning import Label
from discreet.schema.columns import Boolean, Category, ColumnKind, Number
from discreet.schema.schema import Schema
from discreet.typing import Array, Floats, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.inference.summary import MeanInterval, Summary

POINTS = 101
"""Places of a number's range at which its effect is computed."""
OTHER, MOST_NAMES, MOST_LINES = "(other)", 24, 6
"""How other names are shown, and the most names of a column that are written below its panel, or are lines in it."""
NEGLIGIBLE = 1e-12
FAR = 2.0
"""How many times the usual deviation noise has at least where pictures leave an effect out."""
WIDTH, HEIGHT, ACROSS = 3.6, 2.7, 3
"""Inches of a panel, and panels in a row of a figure."""


@dataclass(frozen=True)
class TermEffect:
    """The effect of one column over its declared values, against its mean over them.

    Parameters
    ----------
    column, output : str
        The column, and the class that the effect speaks for; empty for numbers.
    values : tuple
        Numbers from the low to the high end of the range; or names, levels, False and True.
    effect : ndarray
        What each value adds to the linear predictor.
    noise : ndarray or None
        The standard deviation of what the privacy noise did to it, None where that is not known.
    other, at : str, default=""
        For a product of two columns, the other one and its value.

    Examples
    --------
    >>> from discreet.models import TermEffect
    >>> TermEffect("age", "1", (0.0, 1.0), [-0.2, 0.2], None).values
    (0.0, 1.0)
    """

    column: str
    output: str
    values: tuple[Label, ...]
    effect: Floats
    noise: Floats | None
    other: str = ""
    at: str = ""

    @property
    def title(self) -> str:
        """The column, or the product."""
        return f"{self.column} x {self.other}" if self.other else self.column


@dataclass(frozen=True)
class Explanation:
    """One prediction as a sum: a level, and what each term adds to it.

    Parameters
    ----------
    outputs, terms : tuple of str
        The classes that the numbers speak for (empty for a number), and the columns and products.
    level : ndarray of shape (n_outputs,)
        The linear predictor where every column is at its mean over what is declared.
    contributions : ndarray of shape (n_outputs, n_terms)
        What each term adds.
    noise : ndarray of shape (n_outputs, n_terms) or None, default=None
        The standard deviation of what the privacy noise did to it, None where that is not known. Where no row of the
        fit has a value, what it adds is noise alone.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import Explanation
    >>> Explanation(("1",), ("age", "ward"), np.array([0.5]), np.array([[1.0, -0.25]])).score
    array([1.25])
    """

    outputs: tuple[str, ...]
    terms: tuple[str, ...]
    level: Floats
    contributions: Floats
    noise: Floats | None = None

    @property
    def score(self) -> Floats:
        """The linear predictor of the row: log odds, or the predicted number before its link."""
        return np.asarray(self.level + self.contributions.sum(axis=1))

    def __str__(self) -> str:
        width = max(len(name) for name in ("level", "score", *self.terms)) + 2
        lines = []
        for k, output in enumerate(self.outputs):
            order = np.argsort(-np.abs(self.contributions[k]), kind="stable")
            lines += [f"for {output}"] if output else []
            lines += [f"{'level':<{width}}{self.level[k]:+.4f}"]
            for j in order:
                noise = "" if self.noise is None else f"   noise {self.noise[k, j]:.2g}"
                lines += [f"{self.terms[j]:<{width}}{self.contributions[k, j]:+.4f}{noise}"]
            lines += [f"{'score':<{width}}{self.score[k]:+.4f}"]
        return "\n".join(lines)


class TermEffects:
    """What ``TableModel`` reports on effects: for a population, and of its terms."""

    _fitted: Any
    schema_: Schema
    _rows: "Callable[[object], Iterator[tuple[Floats, Floats | None]]]"

    def summary(self, level: float = 0.95) -> "Summary":
        """Return the effects for a population, in the columns' own units: for fits with ``inference="sandwich"``.

        Numbers per their declared unit (1), levels per level, truth against falsehood, categories against their base:
        the declared one, or the first. The intercept is that of a row with every column at its base and every number
        at 0.

        ``level``, what is returned and what is refused are as in ``DPLinearModel.summary``.

        Examples
        --------
        >>> model.summary()
        Traceback (most recent call last):
        discreet.errors.Unsupported: nothing was reserved for standard errors: fit again with inference='sandwich' ...
        """
        from discreet.inference.summary import summary_of

        return summary_of(self._fitted, level, self.schema_)

    def predict_interval(self, data: object, level: float = 0.95) -> "MeanInterval":
        """Return predicted means of rows, with confidence intervals; for two classes the probability of the second.

        As ``DPLinearModel.predict_interval``, of a data frame, a path or a list of paths; the target is not read.

        Examples
        --------
        >>> model.predict_interval(table)
        Traceback (most recent call last):
        discreet.errors.Unsupported: nothing was reserved for standard errors: fit again with inference='sandwich' ...
        """
        from discreet.inference.summary import MeanInterval

        parts = [self._fitted.predict_interval(block, level, offset=offsets) for block, offsets in self._rows(data)]
        return MeanInterval(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def term_effects(self) -> list[TermEffect]:
        """Return the effect of each column over its declared values, for each output. Free: of released values.

        Examples
        --------
        >>> [effect.column for effect in model.term_effects()]
        ['age', 'ward']
        """
        return self._term_effects(_released)

    def shown_effects(self) -> list[TermEffect]:
        """Return the effects of columns, then of products, as pictures show them. Free: of released values.

        Cells whose noise is larger than effects mostly are, and far larger than that of others, have NaN: cells that
        no row has are such. Effects are against the mean over what is left.

        Returns
        -------
        list of TermEffect
            Those of ``term_effects`` and of ``product_effects``, in their order.

        Examples
        --------
        >>> [effect.column for effect in model.shown_effects()]
        ['age', 'ward']
        """
        law = partial(_with_less_noise, _most_noise(self._term_effects(_against_least_noise)))
        return [*self._term_effects(law), *self._product_effects(law)]

    def _term_effects(self, law: "Law") -> list[TermEffect]:
        fitted, schema = self._fitted, self.schema_
        effects = []
        for name, place in Layout(schema).places.items():
            values, features, mean = _declared(schema, name)
            for k, output in enumerate(outputs_of(fitted)):
                effect, noise = law(fitted, k, np.arange(place.start, place.stop), features, mean)
                effects.append(TermEffect(name, output, values, effect, noise))
        return effects

    def product_effects(self) -> list[TermEffect]:
        """Return the partial dependence on each declared product of two columns. Free: of released values.

        It is what both columns and their product add together, over the values of one of them (a number, where there is
        one) and at several values of the other, against the mean of all of these.

        Returns
        -------
        list of TermEffect
            For each product, output and value of the other column (``at``); none for products of three columns.

        Examples
        --------
        >>> model.product_effects()
        []
        """
        return self._product_effects(_released)

    def _product_effects(self, law: "Law") -> list[TermEffect]:
        fitted, schema = self._fitted, self.schema_
        place = {feature.name: j for j, feature in enumerate(Layout(schema).features)}
        effects = []
        for pair in schema.interactions:
            if len(pair) != 2:
                continue
            axis, other = sorted(pair, key=lambda name: not isinstance(schema.columns[name], Number))
            values, shown = _values(schema.columns[axis]), _few_values(schema.columns[other])
            kinds = {name: schema.columns[name] for name in pair}
            both = Schema(kinds, interactions=(pair,), missing_texts=schema.missing_texts)
            layout, rows = Layout(both), len(values) * len(shown)
            cells = {axis: _cells([*values] * len(shown)), other: _cells([u for u in shown for _ in values])}
            features = np.nan_to_num(layout.encode(cells, rows))
            places = [place[feature.name] for feature in layout.features]
            for k, output in enumerate(outputs_of(fitted)):
                effect, noise = law(fitted, k, np.array(places), features, features.mean(axis=0))
                lines = effect.reshape(len(shown), -1)
                for j, value in enumerate(shown):
                    part = None if noise is None else noise.reshape(lines.shape)[j]
                    effects.append(TermEffect(axis, output, values, lines[j], part, other, _text(value)))
        return effects

    def explain(self, row: object) -> Explanation:
        """Return a prediction by its terms: what each column and each product adds to the linear predictor.

        Parameters
        ----------
        row : data frame or dict of columns
            One row with the declared columns.

        Returns
        -------
        Explanation
            Prints as a list, the largest contribution first.

        Raises
        ------
        Unsupported
            If there is more than one row, or none.

        Examples
        --------
        >>> explained = model.explain({"age": [80], "ward": ["a"]})
        >>> explained.score.shape, explained.contributions.shape
        ((1,), (1, 2))
        """
        fitted, layout = self._fitted, Layout(self.schema_)
        blocks = list(self._rows(row))
        if sum(len(block) for block, _ in blocks) != 1:
            raise Unsupported("an explanation is of one row: pass a table with a single one")
        (block, offsets), *_ = blocks
        coef, features = np.atleast_2d(fitted.coef_), block[0]
        level, names, parts, noises = np.atleast_1d(fitted.intercept_).astype(float), [], [], []

        def add(name: str, places: Integers, weights: Floats) -> None:
            names.append(name)
            parts.append(coef[:, places] @ weights)
            noises.append([_noise(fitted, k, places, weights[np.newaxis]) for k in range(len(coef))])

        for name, place in layout.places.items():
            mean = _declared(self.schema_, name)[2]
            level = level + coef[:, place] @ mean
            add(name, np.arange(place.start, place.stop), features[place] - mean)
        if offsets is not None and self.schema_.offset is not None:
            names.append(self.schema_.offset.column)
            parts.append(np.full(len(coef), offsets[0]))
            noises.append([np.zeros(1)] * len(coef))
        products = [j for j, factors in enumerate(layout.factors) if len(factors) > 1]
        for column in dict.fromkeys(layout.features[j].column for j in products):
            places = np.array([j for j in products if layout.features[j].column == column])
            add(column, places, features[places])
        known = getattr(fitted, "coef_noise_", None) is not None
        noise = np.array(noises)[:, :, 0].T if known else None
        return Explanation(tuple(outputs_of(fitted)), tuple(names), level, np.array(parts).T, noise)

    @checked
    def plot_effects(self, columns: Sequence[str] | None = None, *, level: Share = LEVEL) -> "Figure":
        """Draw the effect of each column over its declared values, with a band for the privacy noise.

        Products of two columns follow: what both add together, over one of them, a line per value of the other.
        Bands count the privacy noise alone, as ``intervals`` do, and are no confidence bands for a population. For fits
        with ``inference`` they are intervals for a population, and curves are those of ``summary().plot(column)``. What
        noise hides is left out: without ``inference`` as ``shown_effects`` says.

        Parameters
        ----------
        columns : list of str, default=None
            Which ones; None: all. Products are drawn where both columns are among them.
        level : float, default=0.95
            Of the bands.

        Raises
        ------
        Unsupported
            If a column is not declared, or matplotlib is not installed.

        Examples
        --------
        >>> len(model.plot_effects(["age"]).axes)
        1
        """
        chosen = list(self.schema_.columns) if columns is None else list(columns)
        strange = [name for name in chosen if name not in self.schema_.columns]
        if strange or not chosen:
            raise Unsupported(
                f"there is no column called {', '.join(map(str, strange))}" if strange else "name a column"
            )
        width = deviations(level, pure=self._fitted.certificate_.delta == 0)
        if getattr(self._fitted, "effects_", None) is None:
            every = self.shown_effects()
        else:
            law = partial(_in_population, level, width)
            every = [*self._term_effects(law), *self._product_effects(law)]
        effects = [effect for name in chosen for effect in every if effect.column == name and not effect.other]
        effects += [effect for effect in every if effect.other and {effect.column, effect.other} <= set(chosen)]
        return _figure(effects, width, self._summary_of_curves(level))

    def _summary_of_curves(self, level: float) -> "Summary | None":
        """Return effects for a population, where they were estimated and noise does not hide them."""
        from discreet.inference.summary import summary_of

        if getattr(self._fitted, "effects_", None) is None:
            return None
        try:
            return summary_of(self._fitted, level, self.schema_)
        except Unsupported:
            return None


Law = Callable[[DPLinearModel, int, Integers, Floats, Floats], tuple[Floats, Floats | None]]
"""Maps a model, an output, places of coefficients, rows of their features and the row that they are compared with to
what each row adds and its deviation."""


def _released(
    fitted: DPLinearModel, output: int, places: Integers, features: Floats, mean: Floats
) -> tuple[Floats, Floats | None]:
    """Return the released effect, with what noise did to it."""
    away = features - mean
    return away @ np.atleast_2d(fitted.coef_)[output, places], _noise(fitted, output, places, away)


def _against_least_noise(
    fitted: DPLinearModel, output: int, places: Integers, features: Floats, mean: Floats
) -> tuple[Floats, Floats | None]:
    """Return the released effect of cells against the mean that noise moves least, of others against their mean."""
    noise = _noise(fitted, output, places, features)
    if noise is not None and noise.any() and _are_cells(features):
        weights = 1.0 / np.maximum(np.square(noise), NEGLIGIBLE * np.square(noise).max())
        mean = weights @ features / weights.sum()
    return _released(fitted, output, places, features, mean)


def _with_less_noise(
    most: float, fitted: DPLinearModel, output: int, places: Integers, features: Floats, mean: Floats
) -> tuple[Floats, Floats | None]:
    """Return the released effect; NaN for cells with more noise than this, which the others are not compared with.

    Numbers, and levels, have one effect: all of it is left out where the median noise is more.
    """
    _, noise = _against_least_noise(fitted, output, places, features, mean)
    if noise is None:
        return _released(fitted, output, places, features, mean)
    is_shown = (noise if _are_cells(features) else np.full_like(noise, np.median(noise))) <= most
    if is_shown.any() and not is_shown.all():
        mean = features[is_shown].mean(axis=0)
    effect, noise = _released(fitted, output, places, features, mean)
    return np.where(is_shown, effect, np.nan), None if noise is None else np.where(is_shown, noise, np.nan)


def _are_cells(features: Floats) -> bool:
    """Say whether features are those of cells alone: each has noise of its own."""
    return bool(np.isin(features, (0.0, 1.0)).all())


def _most_noise(effects: Sequence[TermEffect]) -> float:
    """Return how much noise an effect that is shown may have; infinity where it is not known, or may explain all."""
    noises = [effect.noise for effect in effects if effect.noise is not None]
    if len(noises) < len(effects):
        return np.inf
    squares = np.concatenate([np.square(effect.effect) for effect in effects])
    variances = np.concatenate([np.square(noise) for noise in noises])
    weights = np.concatenate([np.full(len(noise), 1.0 / len(noise)) for noise in noises])
    least = NEGLIGIBLE * float(squares.max()) + float(np.finfo(float).tiny)

    def stands_out(x: float) -> bool:
        return bool(weights @ (squares / np.maximum(x + variances, least)) > weights.sum())

    low, high = 0.0, float(squares.max())
    if not stands_out(low):
        return np.inf
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if stands_out(middle) else (low, middle)
    return float(max(np.sqrt(high), FAR * np.median([np.quantile(noise, 0.25) for noise in noises])))


def _in_population(
    level: float, width: float, fitted: DPLinearModel, output: int, places: Integers, features: Floats, mean: Floats
) -> tuple[Floats, Floats | None]:
    """Return the effect, with half-widths of its intervals in ``width``; NaN where noise hides it, None for classes.

    Labels are compared with the mean of those that are visible against any other label.
    """
    coefficients = np.atleast_2d(fitted.coef_)
    if len(coefficients) > 1 or fitted.effects_ is None:
        return (features - mean) @ coefficients[output, places], None
    size = coefficients.size + fitted.fit_intercept
    combinations = Combinations(np.append(coefficients, fitted.intercept_)[:size], fitted.effects_).jointly

    def rows(away: Floats) -> Floats:
        out = np.zeros((len(away), size))
        out[:, places] = away
        return out

    if len(features) <= MOST_NAMES and np.isin(features, (0.0, 1.0)).all():
        cells = features[features @ mean > 0]  # without the one for other labels
        apart = [rows(cells - cell) for cell in cells]
        visible = np.array([row.any(axis=1) & ~combinations.hidden(row) for row in apart]).any(axis=0)
        mean = cells[visible].mean(axis=0) if visible.any() else mean
    _, low, high = combinations.interval(rows(features - mean), level)
    return (features - mean) @ coefficients[0, places], np.asarray((high - low) / 2 / width)


def _noise(fitted: DPLinearModel, output: int, places: Integers, away: Floats) -> Floats | None:
    """Return the deviation of what noise did to sums of coefficients at these places, with weights ``away`` each."""
    noises, near = getattr(fitted, "coef_noise_", None), getattr(fitted, "coef_correlation_", None)
    if noises is None:
        return None
    weights = away * np.atleast_2d(noises)[output, places]
    if near is None:
        return np.asarray(np.sqrt(np.square(weights).sum(axis=1)))
    apart = np.abs(np.subtract.outer(places, places))
    first = np.minimum.outer(places, places)
    correlation = np.where(apart < near.shape[1], near[first, np.minimum(apart, near.shape[1] - 1)], 0.0)
    return np.asarray(np.sqrt(np.maximum(((weights @ correlation) * weights).sum(axis=1), 0.0)))


def _declared(schema: Schema, name: str) -> tuple[tuple[Label, ...], Floats, Floats]:
    """Return the declared values of a column, their features, and the mean of these; other names are not in it."""
    kind = schema.columns[name]
    values = _values(kind)
    features = encoded_cells(schema, name, values)
    if isinstance(kind, Category) and kind.other:
        more = encoded_cells(schema, name, [OTHER_TEXT])
        return (*values, OTHER), np.vstack([features, more]), features.mean(axis=0)
    return values, features, features.mean(axis=0)


def _cells(values: Sequence[Label]) -> Array:
    return np.fromiter(values, dtype=object, count=len(values))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _few_values(kind: ColumnKind) -> tuple[Label, ...]:
    """Return the ends and the middle of a range, or the first names."""
    values = _values(kind)
    return (values[0], values[POINTS // 2], values[-1]) if isinstance(kind, Number) else values[:MOST_LINES]


def _values(kind: ColumnKind) -> tuple[Label, ...]:
    if isinstance(kind, Number):
        low, high = kind.limits
        shares = np.arange(POINTS) / (POINTS - 1)
        return tuple((low * (1 - shares) + high * shares).tolist())
    if isinstance(kind, Boolean):
        return kind.false[0], kind.true[0]
    return kind.categories if isinstance(kind, Category) else kind.levels


def _panels(effects: Sequence[TermEffect]) -> list[list[TermEffect]]:
    """Group effects by panel: the outputs of a column, or the values of a product's other column for one output."""
    panels: dict[tuple[str, str, str], list[TermEffect]] = {}
    for effect in effects:
        panels.setdefault((effect.column, effect.other, effect.output if effect.other else ""), []).append(effect)
    return list(panels.values())


def _figure(effects: Sequence[TermEffect], width: float, summary: "Summary | None") -> "Figure":
    """Draw a panel per column, a line or marks per output; and per product, a line per value of the other column."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported('pictures need matplotlib: pip install "discreet[plot]"') from None
    panels = _panels(effects)
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(WIDTH * across, HEIGHT * down), layout="constrained")
    FigureCanvasAgg(figure)
    outputs = list(dict.fromkeys(effect.output for effect in effects))
    for j, panel in enumerate(panels):
        axes, effect = figure.add_subplot(down, across, j + 1), panel[0]
        title = f"{effect.title}, {effect.output}" if effect.other and len(outputs) > 1 else effect.title
        shown = textwrap.shorten(title, 32, placeholder="\N{HORIZONTAL ELLIPSIS}")
        axes.spines[["top", "right"]].set_visible(False)
        if summary is not None and not effect.other and effect.column in summary.structure.shapes:
            curve_picture(summary, effect.column, axes).set(title="", xlabel="")
            axes.set_title(shown, fontsize="medium", loc="left", parse_math=False)
            continue
        for k, line in enumerate(panel):
            _draw(axes, line, width, f"C{k % 10}")
        if all(line.noise is not None and np.isnan(line.noise).all() for line in panel):
            axes.text(0.5, 0.6, "hidden by noise", transform=axes.transAxes, ha="center", color="0.4")
            axes.set(xticks=[], yticks=[])
        axes.axhline(0.0, color="0.5", linewidth=0.8, zorder=1)
        axes.set_title(shown, fontsize="medium", loc="left", parse_math=False)
        if effect.other:
            axes.legend(title=effect.other, frameon=False, fontsize="small")
    if len(outputs) > 1:
        figure.axes[0].legend(frameon=False, fontsize="small")
    figure.supylabel("added to the linear predictor", fontsize="small")
    return figure


def _draw(axes: "Axes", effect: TermEffect, width: float, color: str) -> None:
    half = None if effect.noise is None else width * effect.noise
    drawn = effect.effect if half is None else np.where(np.isnan(half), np.nan, effect.effect)
    if isinstance(effect.values[0], float) and len(effect.values) == POINTS:
        axes.plot(effect.values, drawn, color=color, linewidth=2.0, zorder=3, label=effect.at or effect.output)
        if half is not None:
            band = drawn - half, drawn + half
            axes.fill_between(effect.values, *band, color=color, alpha=0.18, linewidth=0, zorder=2)
        return
    places = np.arange(len(effect.values))
    axes.errorbar(
        places,
        drawn,
        yerr=half,
        fmt="o",
        color=color,
        markersize=4,
        linewidth=1.5,
        zorder=3,
        label=effect.at or effect.output,
    )
    if len(places) > MOST_NAMES:
        axes.set_xticks([])
        axes.set_xlabel(f"{len(places)} names, in the schema's order", fontsize="small")
        return
    texts = [textwrap.shorten(str(value), 14, placeholder="\N{HORIZONTAL ELLIPSIS}") for value in effect.values]
    tilted: Json = {"rotation": 45, "ha": "right"} if len(texts) > 4 else {}
    axes.set_xticks(places, texts, parse_math=False, **tilted)


@dataclass(frozen=True)
class Coefficient:
    """Coefficient of a fitted model, by name.

    Parameters
    ----------
    column, name : str
        The column, and the feature that was made of it.
    output : str
        The class it speaks for; empty for numbers.
    value : float
        The coefficient.
    noise : float or None
        The standard deviation of what the privacy noise did to it; None where that is not known.
    unit : str
        What a change of 1 means; in the units of the encoded features it is the feature's own range.

    Examples
    --------
    >>> from discreet.models import Coefficient
    >>> Coefficient("age", "age", "1", 0.04, 0.01, "per 1").value
    0.04
    """

    column: str
    name: str
    output: str
    value: float
    noise: float | None
    unit: str


def coefficients_of(schema: Schema, model: DPLinearModel, *, units: str = "original") -> list[Coefficient]:
    """Return a fitted model's coefficients by name: in the columns' own units, or ``units="encoded"`` of the features.

    In original units a number's coefficient is per its unit (1), a level's per level, and truth's against falsehood;
    cells, knots and products are as they are. The intercept is then that of a row with every number at 0.
    """
    if units not in ("encoded", "original"):
        raise Unsupported("units must be 'encoded' or 'original'")
    features, original = Layout(schema).features, units == "original"
    names = [(feature.column, feature.name, feature.unit if original else "encoded") for feature in features]
    scales = np.array([feature.scale if original else 1.0 for feature in features])
    origins = np.array([feature.origin * feature.scale if original else 0.0 for feature in features])
    return _named(model, names, scales, origins, "at 0" if original else "encoded")


def plain_coefficients(model: DPLinearModel) -> list[Coefficient]:
    """Return a fitted estimator's coefficients by the names of its features, or their numbers."""
    p = model.n_features_in_
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"feature {j}" for j in range(p)])]
    return _named(model, [(name, name, "") for name in names], np.ones(p), np.zeros(p), "")


def _named(
    model: DPLinearModel, names: Sequence[tuple[str, str, str]], scales: Floats, origins: Floats, intercept_unit: str
) -> list[Coefficient]:
    """Return coefficients per ``scales``, and the intercept at ``origins``; names are of column, feature and unit."""
    rows, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    spreads, intercept_spreads = (getattr(model, name, None) for name in ("coef_noise_", "intercept_noise_"))
    named = []
    for k, output in enumerate(outputs_of(model)):
        noise = None if spreads is None else np.atleast_2d(spreads)[k] * scales
        for j, (column, name, unit) in enumerate(names):
            spread = None if noise is None else float(noise[j])
            named.append(Coefficient(column, name, output, float(rows[k, j] * scales[j]), spread, unit))
        intercept = float(intercepts[k] - rows[k] @ origins)
        spread = None if intercept_spreads is None else float(np.atleast_1d(intercept_spreads)[k])
        spread = None if origins.any() else spread
        named.append(Coefficient("", INTERCEPT, output, intercept, spread, intercept_unit))
    return named


def outputs_of(model: DPLinearModel) -> list[str]:
    """Return the classes that a fitted model's coefficients speak for; one empty name for numbers."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [""]
    return [str(label) for label in classes[-len(np.atleast_2d(model.coef_)) :]]
