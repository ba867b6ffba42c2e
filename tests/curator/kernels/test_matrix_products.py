"""Products in registers: compiled blocks give the bits of the source, whatever the width and a row's place."""

import numpy as np
import pytest

from discreet.curator.kernels.kernel import LANES, ROWS, add_products, four_through, kernel


@kernel()
def _through(u, matrix, z):
    four_through(u, matrix, z)


def _images(u, matrix):
    z = np.full((ROWS, matrix.shape[1]), np.nan)
    _through(u, matrix, z)
    return z


@pytest.mark.parametrize("p", [1, 3, 4, 5, 8, 102])
@pytest.mark.parametrize("vectors", [1, 2, 3])
def test_panels_give_the_bits_of_the_source(p, vectors):
    rng = np.random.default_rng(p)
    u, matrix = rng.normal(size=(ROWS, p)) * 1e3, rng.normal(size=(p, LANES * vectors))
    plain = np.empty((ROWS, LANES * vectors))
    four_through(u, matrix, plain)
    assert _images(u, matrix).tobytes() == plain.tobytes()
    assert np.allclose(plain, u @ matrix)


def test_an_image_depends_on_its_row_alone():
    rng = np.random.default_rng(0)
    u, matrix = rng.normal(size=(ROWS, 7)), rng.normal(size=(7, 3 * LANES))
    images = _images(u, matrix)
    for r in range(ROWS):
        others = rng.normal(size=(ROWS, 7)) * 1e6
        for place in range(ROWS):
            moved = others.copy()
            moved[place] = u[r]
            assert _images(moved, matrix)[place].tobytes() == images[r].tobytes()


@kernel()
def _add(left, right, out):
    add_products(left, right, out)


@pytest.mark.parametrize("p", [4, 8, 20])
@pytest.mark.parametrize("rows", [LANES, 5 * LANES])
def test_products_of_columns_are_exact(p, rows):
    rng = np.random.default_rng(p)
    left, right = (np.rint(rng.normal(size=(p, rows)) * 2.0**20) for _ in range(2))
    compiled, plain = np.ones((p, p)), np.ones((p, p))
    _add(left, right, compiled)
    add_products(left, right, plain)
    assert np.array_equal(compiled, plain)
    whole = [[1 + sum(int(a) * int(b) for a, b in zip(x, y, strict=True)) for y in right] for x in left]
    assert np.array_equal(np.triu(compiled), np.triu(np.array(whole)))
