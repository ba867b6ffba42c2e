"""Names for arrays by the type of their cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""An array of cells of any type: labels, columns as they were handed over."""
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Booleans = NDArray[np.bool_]
