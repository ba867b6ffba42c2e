"""Several rows a person: ``groups`` makes the person the unit of privacy.

Without ``groups`` a row is protected. Whoever has ten rows would then be protected ten times less. With
``groups`` all rows of a person count as one contribution, the mean of their losses, however many there are.
"""

import numpy as np

from discreet import Bounds, DPLogisticRegression

PERSONS = 4000


def visits(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table of visits: 1 to 9 a person, with features that stay with the person, and noise. Synthetic."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(PERSONS), rng.integers(1, 10, PERSONS))
    age, activity = rng.uniform(18, 90, PERSONS)[person], rng.uniform(0, 10, len(person))
    late = rng.uniform(size=len(person)) < 1 / (1 + np.exp(-0.05 * (age - 54) + 0.5 * (activity - 5)))
    return np.column_stack([age, activity]), late.astype(int), person


def main() -> None:
    X, late, person = visits()
    bounds = Bounds(features=[(0, 120), (0, 10)], classes=(0, 1))

    model = DPLogisticRegression(epsilon=1.0, bounds=bounds)
    model.fit(X, late, groups=person)

    certificate = model.certificate_
    print(f"epsilon = {certificate.epsilon:g} for each {certificate.unit}, whatever the number of their rows")
    print(certificate)


if __name__ == "__main__":
    main()
