"""Predictions of Dask collections: lazy arrays, computed block by block wherever the blocks are."""

import math
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from discreet.curator import is_dask
from discreet.errors import Unsupported

Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """Return a method that predicts; of a Dask collection it returns a Dask array that is not computed yet."""

    @wraps(method)
    def predicted(self: Any, X: Any) -> Any:
        return lazy_predictions(self, method.__name__, X) if is_dask(X) else method(self, X)

    return cast(Method, predicted)


def lazy_predictions(model: Any, name: str, X: Any) -> Any:
    """Return a model's predictions of a Dask array or frame, one block per block of rows."""
    import dask
    import dask.array as da

    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise Unsupported("X must have two dimensions, one row per record")
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        blocks, sizes = whole.to_delayed().ravel().tolist(), whole.chunks[0]
    else:
        blocks = X.to_delayed()
        sizes = [math.nan] * len(blocks)
    sample = getattr(model, name)(_one_row(model))
    predict = dask.delayed(_predicted, pure=False)
    made = _uncharged(model), name, sample[:0]
    return da.concatenate(
        [
            da.from_delayed(predict(*made, block), shape=(size, *sample.shape[1:]), dtype=sample.dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
    )


def _one_row(model: Any) -> Any:
    """Return a row as the model takes rows, to see what predictions look like: of missing values, or of zeros."""
    if hasattr(model, "schema"):
        return {name: [None] for name in model.schema.columns}
    check_is_fitted(model)
    row, names = np.zeros((1, model.n_features_in_)), getattr(model, "feature_names_in_", None)
    if names is None:
        return row
    import pandas as pd

    return pd.DataFrame(row, columns=names)


def _predicted(model: Any, name: str, none: Any, block: Any) -> Any:
    return getattr(model, name)(block) if len(block) else none


def _uncharged(model: Any) -> Any:
    """Return the model without its ledger, which stays here: predictions cost nothing."""
    bare = copy(model)
    for part in ("estimator_", "estimator"):
        inner = getattr(bare, part, None)
        if inner is not None:
            setattr(bare, part, _uncharged(inner))
    if hasattr(bare, "ledger"):
        bare.ledger, bare.dataset = False, None
    return bare
