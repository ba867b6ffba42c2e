"""Bugs in what one record can do to an answer."""

from tests.promises.mutants.mutant import Edit, Mutant

_REPLAY = "tests/promises/test_sensitivity.py::test_every_pair_of_neighbors"
_MOVES = "of its sensitivity"

_WEIGHTS = "tests/models/test_weights.py"
_ADMISSION = "curator/records/admission.py"
_RECODING = "curator/records/recoding.py"
_MOMENTS = "tests/solvers/whitened/test_sensitivity.py"
_UP_TO_THE_BOUND = "test_neighbors_move_a_sum_up_to_the_bound_and_not_beyond"

MUTANTS = (
    Mutant(
        "a weight that is not clipped",
        "A record counts as much as its weight says, beyond the largest that is declared.",
        (
            Edit(_ADMISSION, "np.clip(weights, *self.weights) / self.weights[1]", "weights / self.weights[1]"),
            Edit(_ADMISSION, "np.where(is_weighted, np.minimum(total, 1.0), 0.0)", "np.where(is_weighted, total, 0.0)"),
        ),
        (
            f"{_WEIGHTS}::test_no_weight_and_no_offset_moves_an_answer_by_more_than_its_noise_is_for"
            "[extreme0-classes-zero_out]",
        ),
        _MOVES,
    ),
    Mutant(
        "an offset outside its range",
        "An offset is taken as it is, so that targets lie outside the range that bounds were made for.",
        (Edit(_ADMISSION, "targets, np.clip(offsets, *self.offsets))", "targets, offsets)"),),
        (f"{_WEIGHTS}::test_an_offset_beyond_its_declared_range_counts_as_the_end_of_it[Squared(weight=1.0)]",),
        "assert False",
    ),
    Mutant(
        "a person's rows each counted whole in the sum of weights",
        "A person with several rows moves the sum of weights by each of them, where the noise is for one.",
        (
            Edit(
                "curator/queries/counts.py",
                "entries = unit_bounds(self.bound, records) * (records.norms > 0)",
                "entries = np.full(records.n_rows, self.bound) * (records.norms > 0)",
            ),
        ),
        (f"{_WEIGHTS}::test_a_person_with_several_rows_of_the_largest_weight_counts_once[zero_out]",),
        _MOVES,
    ),
    Mutant(
        "factor one for replace_one",
        "Exchanging a record is counted as adding one: half the noise that is needed.",
        (Edit("budget.py", "return 2 if self is Neighbors.REPLACE_ONE else 1", "return 1"),),
        (f"{_REPLAY}[logistic-replace_one]",),
        _MOVES,
    ),
    Mutant(
        "no clip",
        "A record's gradient is as long as its features make it.",
        (
            Edit(
                "curator/engines/base.py",
                "np.where(reach > 0, per_row // np.maximum(reach, 1), 0)",
                "np.where(reach > 0, COEFFICIENT_LIMIT, 0)",
            ),
        ),
        (f"{_REPLAY}[logistic-zero_out]",),
        "of its sensitivity",
    ),
    Mutant(
        "clip after the sum",
        "The mean gradient is clipped in place of each record's.",
        (
            Edit(
                "curator/queries/gradients.py",
                "    exact = session.engine.total(query)\n",
                "    loose = vars(query) | {'bound': unit.bound * session.engine.n_units}\n"
                "    exact = session.engine.total(GradientQuery(**loose))\n"
                "    most = unit.bound * session.engine.n_units / max(1.0, float(np.linalg.norm(exact)))\n"
                "    exact = np.trunc(exact * min(1.0, most)).astype(np.int64)\n",
            ),
        ),
        (f"{_REPLAY}[logistic-zero_out]",),
        _MOVES,
    ),
    Mutant(
        "a part at hand counted twice",
        "Where records are asked part by part, the first of a thread's parts is added twice.",
        (
            Edit(
                "curator/engines/local.py",
                "for at in range(first + 1, last):",
                "for at in range(first, last):",
            ),
        ),
        ("tests/curator/engines/test_parts.py::test_every_record_is_counted_once[dense]",),
        "once",
    ),
    Mutant(
        "a sample that is not cut with its part",
        "Each part takes the whole sample for its own: other records than those that were drawn.",
        (
            Edit(
                "curator/queries/gradients.py",
                "return replace(self, units=self.units[start:stop] - first)",
                "return replace(self, units=self.units[start:stop] - first // 2)",
            ),
        ),
        ("tests/curator/engines/test_parts.py::test_a_total_is_the_sum_over_all_records[False-dense-700]",),
        "sample",
    ),
    Mutant(
        "a penalty's shift by the number of records",
        "The poster's choice shifts its sums by the penalty times the true number of records, where n is private.",
        (
            Edit(
                "curator/queries/choices.py",
                "_public_offsets(w, steps, n, penalty)",
                "_public_offsets(w, steps, session.engine.n_units, penalty)",
            ),
        ),
        ("tests/solvers/coordinates/test_selection.py::test_an_l2_penalty_shifts_the_sums_of_noisy_max_alike",),
        "seen[0].factor * seen[0].unit.bound",
    ),
    Mutant(
        "clip row by row for persons",
        "Each of a person's rows may contribute as much as a whole person.",
        (
            Edit(
                "curator/engines/base.py",
                "per_row = bound if shares is None else bound // shares",
                "per_row = bound",
            ),
        ),
        ("tests/promises/test_sensitivity.py::test_every_pair_of_persons[zero_out]",),
        "of its sensitivity",
    ),
    Mutant(
        "a person for every missing name",
        "Rows whose person is not named are as many persons as rows.",
        (
            Edit(
                "curator/records/admission.py",
                "key = name if is_name(name) and not is_nothing(name) else None",
                "key = name",
            ),
        ),
        ("tests/promises/mutants/test_killers.py::test_rows_without_a_name_are_one_person[names0]",),
        "assert len(grouping(names, 3)[1]) - 1 == 2",
    ),
    Mutant(
        "penalty inside each record's share",
        "The penalty's gradient is added for each record, outside of what is clipped.",
        (
            Edit(
                "curator/queries/gradients.py",
                "    exact = session.engine.total(query)\n",
                "    exact = session.engine.total(query)\n"
                "    pull = 0.1 * session.engine.n_units * np.atleast_2d(w.T) / unit.step\n"
                "    exact = exact + np.rint(pull).astype(np.int64)\n",
            ),
        ),
        (f"{_REPLAY}[logistic-add_remove]",),
        _MOVES,
    ),
    Mutant(
        "intercept outside the clip",
        "A row's norm leaves out the constant feature, which is summed all the same.",
        (
            Edit(
                "curator/kernels/encode.py",
                "                row[p] = unity\n                squares += unity * unity\n",
                "                row[p] = unity\n",
            ),
        ),
        (f"{_REPLAY}[logistic-zero_out]",),
        _MOVES,
    ),
    Mutant(
        "squared norms in 32 bits",
        "The squared norm of a row wraps around, and a long row looks short.",
        (
            Edit(
                "curator/kernels/encode.py",
                "float(unity)))\n                squares += int64(row[j]) * int64(row[j])\n",
                "float(unity)))\n                squares = int64(np.int32(squares + int64(row[j]) * int64(row[j])))\n",
            ),
        ),
        ("tests/promises/test_hostile_records.py::test_also_where_one_scale_serves_all_features[Logistic]",),
        "assert size(one) <= 1",
    ),
    Mutant(
        "duplicate sparse entries not added up",
        "An entry stored in two parts is clipped and measured part by part.",
        (Edit("curator/records/admission.py", "        csr.sum_duplicates()\n", ""),),
        ("tests/promises/test_hostile_records.py::test_duplicate_entries_are_added_before_the_norm_is_taken[csr-f8]",),
        "assert 0 < size(one) <= 1",
    ),
    Mutant(
        "root of two for means",
        "The smaller factor of squares is used for sums of signed rows, too.",
        (
            Edit(
                "curator/queries/moments.py",
                "ROOT_TWO if power == 2 and session.factor == 2",
                "ROOT_TWO if session.factor == 2",
            ),
        ),
        (
            "tests/solvers/whitened/test_sensitivity.py::test_the_factor_is_that_of_the_docstring[noisy_mean-replace_one]",
        ),
        "assert expected <= factor <= expected * (1 + 1e-9)",
    ),
    Mutant(
        "softmax gradients of length R",
        "The gradient of several classes is taken to be as short as that of two: it is up to the root of 2 longer.",
        (Edit("losses/classification.py", "    lipschitz = math.sqrt(2)\n", "    lipschitz = 1.0\n"),),
        ("tests/losses/test_constants.py::test_softmax_constants_bound_sampled_gradients_and_hessians",),
        "== pytest.approx(math.sqrt(2) * ROW_NORM)",
    ),
    Mutant(
        "solver tolerance left out",
        "The minimizer is only approximate, and its noise is that of an exact one.",
        (
            Edit(
                "curator/queries/minimizers.py",
                "    sensitivity = (session.factor * bound + 2 * tau) / problem.total\n",
                "    sensitivity = session.factor * bound / problem.total\n",
            ),
        ),
        ("tests/solvers/perturbation/test_sensitivity.py::test_a_loose_tolerance_is_paid_for",),
        "assert 0.99 <= moved(*pair)[1] <= 1.0",
    ),
    Mutant(
        "a minimizer that did not converge is published",
        "The certificate of the minimizer is not waited for.",
        (
            Edit(
                "curator/certified/minimize.py",
                "return Minimum(end.w, end.bound) if end.bound <= tolerance else None",
                "return Minimum(end.w, end.bound)",
            ),
        ),
        (
            "tests/solvers/perturbation/test_fail_closed.py::test_a_newton_method_that_fails_changes_nothing_that_can_be_seen[output]",
        ),
        "assert answers[0] == pytest.approx(answers[1], abs=1e-6)",
    ),
    Mutant(
        "projection that stretches",
        "Points inside the ball are scaled up to its surface, so that close points are torn apart before the noise.",
        (
            Edit(
                "curator/queries/minimizers.py",
                "return w if self.radius is None else L2Ball(self.radius).prox(w, 1.0)",
                "return w if self.radius is None else w * (self.radius / np.linalg.norm(w))",
            ),
        ),
        (
            "tests/solvers/perturbation/test_sensitivity.py::test_projection_onto_the_ball_is_before_the_noise_and_never_stretches",
        ),
        "assert 0.99 <= moved(*linear_pair(short))[1] <= 1.0",
    ),
    Mutant(
        "range of choices halved",
        "Scores of coordinates may move apart by twice what one may move: the choice is made for once.",
        (
            Edit(
                "curator/queries/choices.py",
                "int((1 << m) * Fraction(epsilon) / 2) - _SLACK",
                "int((1 << m) * Fraction(epsilon)) - _SLACK",
            ),
        ),
        ("tests/solvers/coordinates/test_selection.py::test_the_lattice_of_scores[1-1e-06]",),
        "assert Fraction(2 * (step + 2), 1 << m) <= Fraction(epsilon)",
    ),
    Mutant(
        "range of candidates for add_remove",
        "A choice among points under replace_one has the scale of one record more or less.",
        (
            Edit(
                "curator/queries/choices.py",
                "unit_for(session.multiplier(release), session.factor, loss_bound",
                "unit_for(session.multiplier(release), 1, loss_bound",
            ),
        ),
        (
            "tests/solvers/test_agd.py::test_likelihood_ratios_of_neighbors_are_within_the_claim[replace_one-exponential]",
        ),
        "assert spread <= epsilon * (1 + 1e-9)",
    ),
    Mutant(
        "errors of candidates for add_remove",
        "A choice by numbers of errors under replace_one takes an exchange for one error more or less.",
        (
            Edit(
                "curator/queries/choices.py",
                "unit_for(session.multiplier(release), session.factor, loss_bound",
                'unit_for(session.multiplier(release), session.factor if score == "loss" else 1, loss_bound',
            ),
        ),
        (
            "tests/solvers/perturbation/test_zero_one.py::test_the_worst_record_reaches_the_claim_and_not_more[replace_one]",
        ),
        "assert np.abs(found).max() <= EPSILON * (1 + 1e-9)",
    ),
    Mutant(
        "curvature beyond its limit",
        "A record's Hessian counts with all of its curvature, however long its row is.",
        (
            Edit(
                "curator/kernels/gradients.py",
                "int64(bounded(bend * (facts[i, 1] * scale), facts[i, 2]))",
                "int64(bounded(bend * (facts[i, 1] * scale), 1e15))",
            ),
        ),
        ("tests/curator/queries/test_effects.py::test_no_point_and_no_clip_breaks_the_bound[one-noisy_curvature]",),
        "assert ratio_squared(vector, [0] * len(vector), found) <= 1",
    ),
    Mutant(
        "couplings of classes beyond their limit",
        "A record's Hessian of several classes counts in full, however long its row is.",
        (
            Edit(
                "curator/kernels/gradients.py",
                "bound_vector(values, int64(facts[i, 2]), False, whole)",
                "bound_vector(values, int64(1) << 30, False, whole)",
            ),
        ),
        ("tests/curator/queries/test_effects.py::test_no_point_and_no_clip_breaks_the_bound[several-noisy_curvature]",),
        "assert ratio_squared(vector, [0] * len(vector), found) <= 1",
    ),
    Mutant(
        "squared residuals beyond their limit",
        "The size of residuals counts an outlier in full.",
        (
            Edit(
                "curator/kernels/gradients.py",
                "int64(bounded(slope * slope * (facts[i, 1] * scale), facts[i, 2]))",
                "int64(bounded(slope * slope * (facts[i, 1] * scale), 1e15))",
            ),
        ),
        (
            "tests/curator/queries/test_effects.py::test_no_point_and_no_clip_breaks_the_bound[one-noisy_squared_slopes]",
        ),
        "assert ratio_squared(vector, [0] * len(vector), found) <= 1",
    ),
    Mutant(
        "a row in several shells counts in full in each",
        "Counts of rows by length, slope, Hessian and score forget that a row is in one shell of each kind.",
        (Edit("curator/queries/effects.py", "share = math.isqrt(unit.bound**2 // kinds)", "share = unit.bound"),),
        ("tests/curator/queries/test_shells.py::test_no_point_breaks_the_bound[w2]",),
        "assert ratio_squared(vector, [0] * len(vector), found) * found.factor**2 <= 1",
    ),
    Mutant(
        "a row counts in full for each column",
        "Counts of rows by magnitude forget that a row is in one cell of each column.",
        (
            Edit(
                "curator/queries/moments.py",
                "one, grid = math.isqrt(unit.bound**2 // features), engine.grid",
                "one, grid = unit.bound, engine.grid",
            ),
        ),
        ("tests/curator/queries/test_magnitudes.py::test_no_center_breaks_the_bound[center0]",),
        "assert ratio_squared(vector, [0] * len(vector), measured) * measured.factor**2 <= 1",
    ),
    Mutant(
        "factor one for curvatures and scores",
        "Exchanging a record moves a sum of positive semidefinite matrices by no more than adding one.",
        (
            Edit(
                "curator/queries/effects.py",
                "return ROOT_TWO if session.factor == 2 else session.factor",
                "return 1",
            ),
        ),
        (
            "tests/curator/queries/test_effects.py::test_the_factor_is_that_of_the_docstring[one-noisy_score_covariance-replace_one]",
        ),
        "assert expected <= factor <= expected * (1 + 1e-9)",
    ),
    Mutant(
        "scores row by row for persons",
        "Each of a person's rows adds a score of its own to the covariance, each as long as a person's may be.",
        (
            Edit(
                "curator/queries/effects.py",
                "starts = np.arange(records.n_rows + 1, dtype=np.int64) if records.starts is None else records.starts",
                "starts = np.arange(records.n_rows + 1, dtype=np.int64)",
            ),
        ),
        (
            "tests/curator/queries/test_effects.py::test_neighbors_move_a_sum_up_to_the_bound_and_not_beyond[one-persons-noisy_score_covariance-zero_out]",
        ),
        "assert_neighbors_reach_the_bound",
    ),
    Mutant(
        "twice the clip",
        "Records are clipped at twice the bound that their noise is scaled to.",
        (
            Edit(
                "curator/engines/base.py",
                "    per_row = bound if shares is None else bound // shares\n",
                "    per_row = 2 * bound if shares is None else 2 * bound // shares\n",
            ),
        ),
        (f"{_REPLAY}[logistic-zero_out]",),
        "of its sensitivity",
    ),
    Mutant(
        "factor one in the lattice alone",
        "The certificate knows that an exchange moves a sum twice, and the lattice does not: half of the noise.",
        (
            Edit(
                "curator/session.py",
                "unit_for(self.multiplier(release), factor, clip, self.largest_n)",
                "unit_for(self.multiplier(release), 1, clip, self.largest_n)",
            ),
        ),
        (f"{_REPLAY}[logistic-replace_one]",),
        "less noise",
    ),
    Mutant(
        "outer products that are not clipped",
        "A record's second moment is as large as its features make it.",
        (
            Edit(
                "curator/queries/moments.py",
                "return np.minimum(_most(engine, query.scale), limits)",
                "return _most(engine, query.scale)",
            ),
        ),
        (f"{_MOMENTS}::{_UP_TO_THE_BOUND}[noisy_second_moment-recoded-zero_out-True]",),
        "assert",
    ),
    Mutant(
        "outer products clipped by the norm and not its square",
        "The clip of a second moment is made for the length of a row.",
        (
            Edit(
                "curator/queries/moments.py",
                "squared = np.square(np.minimum(records.sums if query.use_l1 else records.norms, _LONGEST))",
                "squared = np.minimum(records.sums if query.use_l1 else records.norms, _LONGEST)",
            ),
        ),
        (f"{_MOMENTS}::{_UP_TO_THE_BOUND}[noisy_second_moment-recoded-zero_out-True]",),
        "assert",
    ),
    Mutant(
        "a person's rows each counted whole in second moments",
        "A person moves the sum of outer products by as many bounds as there are rows.",
        (
            Edit(
                "curator/queries/moments.py",
                "unit_bounds(query.bound, records) // np.maximum(squared, 1)",
                "query.bound // np.maximum(squared, 1)",
            ),
        ),
        (f"{_MOMENTS}::test_persons_with_many_rows_stay_within_the_bound[noisy_second_moment]",),
        "assert",
    ),
    Mutant(
        "a person's rows each counted whole in a coordinate",
        "A person moves an entry of the gradient by as many bounds as there are rows.",
        (
            Edit(
                "curator/queries/coordinates.py",
                "(int(bound) // shares).astype(np.float64)",
                "(int(bound) + 0 * shares).astype(np.float64)",
            ),
        ),
        ("tests/solvers/coordinates/test_contributions.py::test_one_person_of_many_rows[False-squared]",),
        "assert",
    ),
    Mutant(
        "factor one for squared norms",
        "Exchanging a record is counted as adding one, where opposite squares move the sums by the root of two.",
        (
            Edit(
                "curator/queries/moments.py",
                "factor = ROOT_TWO if session.factor == 2 and not session.uses_l1(release) else session.factor",
                "factor = 1 if session.factor == 2 and not session.uses_l1(release) else session.factor",
            ),
        ),
        (
            "tests/solvers/coordinates/test_oracles.py::test_squared_norms_have_the_right_noise"
            "[False-replace_one-1.4142135623730951]",
        ),
        "assert",
    ),
    Mutant(
        "null records at minus the center",
        "A record that was blanked out is recoded like any other, so that it counts.",
        (Edit(_RECODING, "rows[cut], records.norms[cut], unit", "rows[cut], records.norms[cut] + 1, unit"),),
        ("tests/curator/records/test_recoding.py::test_null_records_stay_null[dense-recoding0]",),
        "assert",
    ),
    Mutant(
        "a scale of recoded rows from the data",
        "Each row's image depends on the longest row of the table.",
        (
            Edit(
                _RECODING,
                "unit, inverse = 1.0 / records.grid.one, 1.0 / recoding.scale\n",
                "longest = max(1.0, float(records.norms.max(initial=0)) / records.grid.one)\n"
                "        unit, inverse = 1.0 / records.grid.one, 1.0 / (recoding.scale * longest)\n",
            ),
        ),
        ("tests/curator/records/test_recoding.py::test_a_record_alone_has_the_same_image[dense-recoding0]",),
        "assert",
    ),
    Mutant(
        "norms of rows before they were recoded",
        "Clips are made for other rows than those that are summed.",
        (
            Edit(
                _RECODING,
                "targets=targets, norms=norms, sums=sums,",
                "targets=targets, norms=records.norms, sums=sums,",
            ),
        ),
        ("tests/curator/records/test_recoding.py::test_declared_bounds_hold_for_any_map",),
        "assert",
    ),
    Mutant(
        "a change of gradients that is not clipped",
        "The change of a record's gradient is as long as its features make it.",
        (
            Edit(
                "curator/queries/gradients.py",
                "        bound=unit.bound,\n",
                "        bound=unit.bound if anchor is None else unit.bound << 5,\n",
            ),
        ),
        ("tests/solvers/test_svrg.py::test_the_clip_bites_far_below_the_change",),
        "assert",
    ),
)
