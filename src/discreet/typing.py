"""Names for arrays by the type of their cells."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Booleans = NDArray[np.bool_]
