"""What a guarantee does not cover, and when it is weak: the fixed words of every certificate.

They are constants, not fields of a certificate: nobody can edit them away in a file.
"""

GIVEN = "given"
"""The name in ``Certificate.assumed_public`` of vectors and tables of numbers that the user handed in."""

WEAK_EPSILON = 8.0
"""Above this epsilon little is promised: a guess between two equally likely values may be right in 99.97% of cases."""
VERY_WEAK_EPSILON = 16.0
"""Above this epsilon next to nothing is promised."""

STEPS_BEFORE = (
    "Steps before the model that were fitted on the rows, such as scalers, encoders and feature selection: what they "
    "learned from the rows was not counted."
)
READ_OFF = (
    "Facts taken as public that were read off the rows, such as ranges, classes, a start or moments: they are "
    "published as they were given, and were not counted."
)
EXACT_SCORES = "Exact scores of the rows, such as model.score(X, y): each is a release without noise."
OTHER_FITS = "Earlier and other fits of the same rows, such as those of a search: each spent its own budget."
UNCHARGED_FITS = "Fits and scores of the same rows that were not charged to this ledger."


def not_covered(*, has_ledger: bool) -> tuple[str, ...]:
    """Return what no certificate covers, in sentences."""
    return STEPS_BEFORE, READ_OFF, EXACT_SCORES, UNCHARGED_FITS if has_ledger else OTHER_FITS


def weaknesses(epsilon: float, delta: float, n: object) -> tuple[str, ...]:
    """Return why a guarantee promises little, from public values; ``n`` counts where it is a whole number.

    A mechanism that publishes one record in full, drawn at random, is (0, 1/n)-DP.
    """
    found = [f"epsilon is above {WEAK_EPSILON:g}"] if epsilon > WEAK_EPSILON else []
    if isinstance(n, int) and not isinstance(n, bool) and delta * n >= 1:
        found.append("delta is at least 1/n")
    return tuple(found)


def promises_nothing(epsilon: float, delta: float, n: object) -> bool:
    """Say whether a guarantee is so weak that it should be shown as none: a huge epsilon, or delta >= 1/n."""
    return epsilon > VERY_WEAK_EPSILON or len(weaknesses(0.0, delta, n)) > 0
