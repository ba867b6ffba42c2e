"""Bugs in the noisy counts that private ranges are made of."""

from tests.promises.mutants.mutant import Edit, Mutant, bug

_COUNTS = "curator/queries/counts.py"
_REPLAY = "tests/promises/test_sensitivity_of_tables.py"
_MOVES = "of its sensitivity"
_NOISE = "            self._noise = session.noise(release, unit, size)\n"

MUTANTS = (
    bug(
        "every cell of a record counts in full",
        "A record is in many cells, and contributes as much as a record in one to each of them.",
        _COUNTS,
        "weight = unit.bound // per_record if use_l1 else math.isqrt(unit.bound**2 // per_record)",
        "weight = unit.bound",
        f"{_REPLAY}::test_private_ranges_replay[zero_out-gaussian-records]",
        _MOVES,
    ),
    bug(
        "cells counted for the wrong norm",
        "Under pure budgets a record's cells are bounded in L2, and Laplace noise needs L1.",
        _COUNTS,
        "weight = unit.bound // per_record if use_l1 else math.isqrt(unit.bound**2 // per_record)",
        "weight = math.isqrt(unit.bound**2 // per_record)",
        f"{_REPLAY}::test_private_ranges_replay[add_remove-laplace-records]",
        _MOVES,
    ),
    bug(
        "root of two for Laplace counts",
        "The smaller factor of sums without negative entries is used in L1, where it does not hold.",
        _COUNTS,
        "ROOT_TWO if exchanged == 2 and not use_l1",
        "ROOT_TWO if exchanged == 2",
        f"{_REPLAY}::test_private_ranges_replay[replace_one-laplace-records]",
        _MOVES,
    ),
    bug(
        "blanked records are in no cell of the checks",
        "Under zero_out a record's cells are exchanged for those of the null record, which is counted too.",
        _COUNTS,
        "2 if query == CHECKS and session.budget.neighbors.n_is_public else session.factor",
        "session.factor",
        "tests/promises/test_sensitivity_of_tables.py::test_numbers_to_predict[zero_out]",
        _MOVES,
    ),
    bug(
        "persons counted row by row",
        "Each of a person's rows is counted as a whole person.",
        _COUNTS,
        "np.where(shares > 0, self._weight // np.maximum(shares, 1), 0)",
        "np.where(shares > 0, self._weight, 0)",
        f"{_REPLAY}::test_private_ranges_replay[zero_out-gaussian-persons]",
        _MOVES,
    ),
    bug(
        "a cell counted as often as it is named",
        "A row that names a cell twice is in it twice.",
        "curator/kernels/moments.py",
        " and seen[cell] != row:",
        ":",
        "tests/curator/queries/test_counts.py::test_the_sum_is_that_of_pythons_integers",
        "assert seen.exact.tolist() == by_hand(rows, shares, 7, one_of(seen, cells.shape[1]))",
    ),
    Mutant(
        "cells beyond the last one",
        "The number of a cell is not checked, and memory behind the counts is written.",
        (
            Edit("curator/kernels/moments.py", "cell >= 0 and cell < out.size and seen", "cell >= 0 and seen"),
            Edit("curator/kernels/moments.py", "cell = cells[i, e]", "cell = min(cells[i, e], out.size - 1)"),
        ),
        ("tests/curator/queries/test_counts.py::test_the_sum_is_that_of_pythons_integers",),
        "assert seen.exact.tolist() == by_hand(rows, shares, 7, one_of(seen, cells.shape[1]))",
    ),
    Mutant(
        "noise of counts drawn after the records were read",
        "How long the noise takes, and whether it fails, comes after the exact counts are in memory.",
        (
            Edit(_COUNTS, _NOISE, ""),
            Edit(_COUNTS, "exact + self._noise", "exact + session.noise(self._release, unit, exact.size)"),
        ),
        ("tests/curator/queries/test_counts.py::test_noise_is_drawn_before_a_record_is_read",),
        'assert events[-1] == "records"',
    ),
    bug(
        "one noise for two halves of the counts",
        "The first half of the cells and the second have the same noise: their difference has none.",
        _COUNTS,
        _NOISE,
        "            self._noise = np.resize(session.noise(release, unit, -(-size // 2)), size)\n",
        f"{_REPLAY}::test_noise_of_ranges_is_never_used_twice[gaussian]",
        "used more than once",
    ),
    bug(
        "noise of counts rescaled to one cell",
        "The noise is that of a record in a single cell, as the lattice's step has it.",
        _COUNTS,
        "exact + self._noise, factor",
        "exact + self._noise // math.isqrt(self._per_record), factor",
        "tests/curator/queries/test_counts.py::test_the_noise_is_what_was_planned_and_what_is_said[False-replace_one]",
        "assert stats.kstest(found.counts, law.cdf).pvalue > 1e-6",
    ),
)
