"""What a machine lacks is told without what was asked of it."""

import numpy as np
import pytest

from discreet.curator.records.storage import within_memory


def test_memory_that_runs_out_names_no_number_of_rows():
    with pytest.raises(MemoryError, match="not enough memory") as told:
        within_memory(lambda: np.empty((123_456_789_012, 100_000)))
    chain, seen = told.value, []
    while chain is not None:
        seen.append(str(chain))
        chain = chain.__cause__ or chain.__context__
    assert len(seen) == 1
    assert "123456789012" not in seen[0]
