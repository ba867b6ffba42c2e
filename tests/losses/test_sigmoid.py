import math

import mpmath
import numpy as np
import pytest
from numba import njit

from discreet.losses.sigmoid import exp, log1p_exp, sigmoid

FUNCTIONS = [exp, sigmoid, log1p_exp]


@njit
def loop_exp(x, out):
    for i in range(x.shape[0]):
        out[i] = exp(x[i])


@njit
def loop_sigmoid(x, out):
    for i in range(x.shape[0]):
        out[i] = sigmoid(x[i])


@njit
def loop_log1p_exp(x, out):
    for i in range(x.shape[0]):
        out[i] = log1p_exp(x[i])


LOOPS = [loop_exp, loop_sigmoid, loop_log1p_exp]


def arguments(count=1500):
    rng = np.random.default_rng(0)
    wide = rng.uniform(-708, 708, count)
    near = rng.normal(size=count) * 4
    tiny = rng.normal(size=count) * 10.0 ** rng.integers(-300, 0, count)
    halfway = (np.arange(-1000, 1000) + 0.5) * math.log(2)
    return np.concatenate([wide, near, tiny, halfway, [0.0, -0.0, -708.0, 708.0]])


def test_relative_errors_against_exact_arithmetic():
    worst = dict.fromkeys(FUNCTIONS, 0.0)
    with mpmath.workdps(40):
        for x in arguments().tolist():
            e = mpmath.exp(mpmath.mpf(x))
            for function, exact in ((exp, e), (sigmoid, e / (1 + e)), (log1p_exp, mpmath.log1p(e))):
                worst[function] = max(worst[function], float(abs(function(x) / exact - 1)))
    assert worst[exp] < 6e-16
    assert worst[sigmoid] < 6e-16
    assert worst[log1p_exp] < 8e-16


@pytest.mark.parametrize("x", [-745.0, -1e6, -math.inf, math.nan, 745.0, 1e300, math.inf])
def test_every_argument_has_a_value_in_range(x):
    compiled = np.empty(1)
    with np.errstate(over="ignore"):
        loop_sigmoid(np.array([x]), compiled)
    assert 0.0 <= sigmoid(x) <= 1.0
    assert compiled[0] == sigmoid(x)
    assert exp(x) > 0.0
    if x < -708:
        assert sigmoid(x) < 1e-300
        assert 0.0 < log1p_exp(x) < 1e-300
    if x > 708:
        assert sigmoid(x) == 1.0
        assert log1p_exp(x) == x


@pytest.mark.parametrize(("loop", "function"), list(zip(LOOPS, FUNCTIONS, strict=True)))
def test_compiled_code_gives_the_bits_of_plain_python(loop, function):
    x = arguments()
    compiled = np.empty_like(x)
    loop(x, compiled)
    plain = np.array([function(value) for value in x.tolist()])
    np.testing.assert_array_equal(compiled.view(np.int64), plain.view(np.int64))
