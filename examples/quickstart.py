"""A first private model: declare what is public, fit, read the certificate, save.

Run it with ``python examples/quickstart.py``. It writes ``model.discreet`` into the current folder.
"""

import numpy as np

import discreet
from discreet import Bounds, DPLogisticRegression


def main() -> None:
    rng = np.random.default_rng(0)  # synthetic patients
    age, smoker = rng.uniform(18, 90, 5000), rng.integers(0, 2, 5000)
    ill = (rng.uniform(size=5000) < 1 / (1 + np.exp(6 - 0.08 * age - smoker))).astype(int)

    # From the codebook, never from the data: values outside are clipped.
    bounds = Bounds(features=[(0, 120), (0, 1)], classes=(0, 1))
    model = DPLogisticRegression(epsilon=1.0, bounds=bounds).fit(np.column_stack([age, smoker]), ill)

    print(model.predict([[30, 0], [85, 1]]))
    print("\n".join(model.certificate_.summary().splitlines()[:5]))

    path = model.save("model.discreet")
    same = discreet.load(path)
    print("read back:", same.predict([[30, 0], [85, 1]]))


if __name__ == "__main__":
    main()
