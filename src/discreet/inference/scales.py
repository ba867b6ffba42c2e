"""Find the center and scale of columns whose declared ranges are far too wide, before rows are whitened.

Scales over a whole declared range have the noise of the range. A column that varies too little for it would vanish in
the noise of second moments and Hessians: its own effect would be hidden, and the effects of columns that go with it
would not be adjusted for it. So such columns are looked at again, in windows that follow what was released before:

    v = noisy mean squares about the center, in units of half the declared range;  narrow: v within noise of least^2
    w = sqrt(v + 2 noise) / 2;  for each of a few rounds, of the narrow columns alone:
        a_j    = noisy share of rows that are farther than w_j from the center in column j
        center = center + the noisy mean of rows about it, each at most a few windows long
        w      = w / (the quantile of |N(0, 1)| that leaves out a), the scale,  where a stands out of noise;  else w / 5

A column of few values is not mistaken for one in a range too wide: as many rows are beyond windows of any size, or all
where a window misses their common place. Last looks at a smaller and a larger window tell it, and it keeps its scale.

Privacy
-------
Relation and sensitivity: ``noisy_mean_squares`` (B, sqrt(2) B under ``replace_one``), ``noisy_shells`` (the same),
``noisy_mean`` (B, 2 B), each proven at the curator, on records that are recoded by released values.
Mechanism: Gaussian noise. Event: one ``Gaussian`` each, as the plan lists them. Conditions: windows, centers and which
columns are narrow follow from declared facts and released values alone.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.curator import Edges, Recoding
from discreet.solvers.coordinates import LEAST_SCALE, SQUARES, declared_coordinates, noises, shares_to_noise
from discreet.typing import Booleans, Floats, Integers

if TYPE_CHECKING:
    from discreet.curator import Curator

ROUNDS, SMALLER = 5, 5.0
"""Looks at narrow columns, and how many times smaller the next window is where none was found: a column a thousand
times narrower than its range is found."""
LEAST_WINDOW = 2e-4
"""In units of half the declared range: records are not known much better than that."""
FEWEST, CLEAR, UNLIKELY = 0.1, 3.0, 4.0
"""The least share of rows beyond a window that tells a scale, and in deviations of its noise; how many deviations of
its noise a mean square is off at most: to look at a column for nothing costs little."""
UNSURE, CLAIMED = 0.05, 0.3
"""With so much noise in a share no scale is read from it; with so few rows in all windows, those which leave one may
count for other columns."""
MOST, SPREAD = 0.9, 0.8
"""The largest share that is read as such: beyond, the window is smaller than a tenth of the scale; and the largest that
a window of one scale leaves out."""
CHECKS = ((0.25, 0.2, 0.95), (3.0, -math.inf, 0.06))
"""Last looks at windows of so many scales, and the shares of a number's rows that are beyond: many, but not all, and
few. Of a column with few values about as many are beyond both, or all."""
LONG, FAR = 1.2, 8.0
"""Rows of narrow columns are shrunk to so many typical lengths where their mean is taken, and where they count."""
LEAST_CONSTANT = 0.2
"""The least mean of the constant in shrunk rows, whatever the noise says."""
SQUARES_PART, SHARES_PART = 0.2, 0.3
"""Of what scales get: for the mean squares, and for the shares; means have the rest."""


class Narrow(NamedTuple):
    """Columns with a scale that only windows showed: which, and center and scale of all in admitted coordinates."""

    places: Booleans
    center: Floats
    scale: Floats


def scale_releases(domain: Domain, share: float) -> tuple[Release, ...]:
    """List the looks, in a share of mu^2."""
    rest, looks = 1.0 - SQUARES_PART - SHARES_PART, ROUNDS + len(CHECKS)
    means = (Release("noisy_mean", ROUNDS, relative_noise=_noise(rest, share, ROUNDS)),)
    return (
        Release("noisy_mean_squares", 1, relative_noise=_noise(SQUARES_PART, share, 1)),
        Release("noisy_shells", looks, relative_noise=_noise(SHARES_PART, share, looks)),
        *(means if domain.intercept else ()),
    )


def _noise(part: float, share: float, count: int) -> float:
    return shares_to_noise(part * share, count)


def narrow_columns(curator: "Curator", admitted: Domain, center: Floats, n: float) -> Narrow:
    """Take the looks, and return the columns whose scale they found."""
    half, features = declared_coordinates(admitted).scale, len(center)
    squares, noise = _mean_squares(curator, admitted, center, half, n)
    looked = squares < LEAST_SCALE**2 + UNLIKELY * noise
    windows = half * np.sqrt(np.maximum(squares, 0.0) + 2.0 * noise + 1e-12) / 2.0
    is_narrow, beyond = np.zeros(features, dtype=np.bool_), np.zeros(features)
    for _ in range(ROUNDS):
        beyond, inside, doubt = _shares_beyond(curator, admitted, center, windows, looked, n)
        if admitted.intercept:
            center = _centers(curator, admitted, center, windows, looked, n)
        is_narrow = looked & (beyond > max(FEWEST, CLEAR * doubt)) & (doubt < UNSURE)
        scale = windows / ndtri(1.0 - np.clip(beyond, FEWEST, MOST) / 2.0)
        smaller = np.maximum(windows / (SMALLER if inside > CLAIMED else 1.0), LEAST_WINDOW * half)
        windows = np.where(is_narrow, scale, smaller)
    is_narrow &= (beyond < SPREAD) & (windows < LEAST_SCALE * half / 2.0)
    for times, least, most in CHECKS:
        beyond, _, _ = _shares_beyond(curator, admitted, center, times * windows, looked, n)
        is_narrow &= (beyond > least) & (beyond < most)
    return Narrow(is_narrow, center, windows)


def _mean_squares(curator: "Curator", admitted: Domain, center: Floats, half: Floats, n: float) -> tuple[Floats, float]:
    """Return the mean squares about the center in units of half the declared ranges, and their noise's deviation."""
    clip = SQUARES * math.sqrt(admitted.n_features)
    with curator.recoded(Recoding(center, half, 0.0)):
        answer = curator.noisy_mean_squares(clip=clip, n=n)[: len(center)]
    root = math.sqrt(curator.budget.neighbors.sum_factor)
    return answer, noises(curator, "noisy_mean_squares")[-1] / root * clip / n


def _selected(
    admitted: Domain, center: Floats, windows: Floats, looked: Booleans, *, constant: bool, lengths: float
) -> Recoding:
    """Return the map to the columns that are looked at, in windows, with the constant or without."""
    places = _places(looked)
    matrix = np.zeros((admitted.n_features, len(places) + constant))
    matrix[places, np.arange(len(places))] = 1.0
    matrix[-1, len(places) :] = 1.0
    return Recoding(center, windows, matrix=matrix, reach=lengths * math.sqrt(matrix.shape[1]))


def _places(looked: Booleans) -> Integers:
    """Return the columns that are looked at; the first where none has to be, since what is planned is asked."""
    return np.flatnonzero(looked) if looked.any() else np.zeros(1, dtype=np.int64)


def _shares_beyond(
    curator: "Curator", admitted: Domain, center: Floats, windows: Floats, looked: Booleans, n: float
) -> tuple[Floats, float, float]:
    """Return the share of rows that leave each column's window, that of rows in all of them, and a count's noise.

    A row counts for the column in which it goes farthest. With a share I of rows in no column's count, and A_j in that
    of column j, about 1 - I^(A_j / (1 - I)) leave its window, if columns leave theirs independently.
    """
    none = np.empty(0)
    with curator.recoded(_selected(admitted, center, windows, looked, constant=False, lengths=FAR)):
        edges = Edges(none, none, none, np.ones(curator.domain.n_features))
        shells = curator.noisy_shells(np.zeros(curator.domain.shape), edges=edges, reach=FAR)
    noise = shells.noise / n
    least = min(max(noise / 2.0, 1e-6), 0.5)
    inside = float(np.clip(shells.columns[0] / n, least, 1.0 - least))
    shares = np.zeros(len(center))
    shares[_places(looked)] = 1.0 - inside ** np.clip(shells.columns[1:] / n / (1.0 - inside), 0.0, 1.0)
    return shares, inside, noise


def _centers(
    curator: "Curator", admitted: Domain, center: Floats, windows: Floats, looked: Booleans, n: float
) -> Floats:
    """Return centers after a noisy mean of rows about them, within the declared ranges."""
    with curator.recoded(_selected(admitted, center, windows, looked, constant=True, lengths=LONG)):
        mean = curator.noisy_mean(clip=curator.domain.row_norm, n=n)
    moved, places = np.zeros(len(center)), _places(looked)
    moved[places] = mean[:-1] / max(float(mean[-1]), LEAST_CONSTANT)
    start = declared_coordinates(admitted)
    low, high = start.center - start.scale, start.center + start.scale
    centers = center + np.where(looked, windows * np.clip(moved, -LONG, LONG), 0.0)
    return np.asarray(np.clip(centers, low, high))
