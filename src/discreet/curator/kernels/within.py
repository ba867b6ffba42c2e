"""How many records' gradient entries lie within a threshold."""

from numba import njit

from discreet.losses.base import derivative


@njit(cache=True, nogil=True)
def within_sum(column, margins, targets, signs, margin_scale, threshold, loss, out):
    """Add +signs[i] where |slope x| <= threshold and -signs[i] where not (NaN counts as outside)."""
    for i in range(column.size):
        slope = derivative(loss, float(margins[i]) * margin_scale, targets[i])
        if abs(slope * float(column[i])) <= threshold:
            out[0] += signs[i]
        else:
            out[0] -= signs[i]
