"""Bugs at the door: facts read from the records, and records that speak."""

from tests.promises.mutants.mutant import bug

_REPLAY = "tests/promises/test_sensitivity.py::test_every_pair_of_neighbors"

MUTANTS = (
    bug(
        "every threshold a unit of its own",
        "The rows of a record of an ordered class are bounded one by one, so that a record adds K - 1 contributions.",
        "curator/records/derived.py",
        "yield Block(*flat, np.repeat(persons, count), None, *beside)",
        "yield Block(*flat, np.arange(count * (done - rows), count * done), None, *beside)",
        "tests/models/test_ordinal.py::test_no_record_moves_an_answer_by_more_than_one_contribution[zero_out-records]",
        "of the sensitivity",
    ),
    bug(
        "a curve's norm without its bends",
        "The declared norm of a curve's features counts its line alone, so that rows are longer than declared.",
        "curator/tables/encode.py",
        "norm = np.sqrt((nodes**2 + np.square(controls).sum(axis=2)).max())",
        "norm = np.sqrt((nodes**2).max())",
        "tests/curator/tables/test_curves.py::test_the_norm_holds_everywhere_and_is_nearly_reached[knots3]",
        "assert",
    ),
    bug(
        "a stream's labels as they are",
        "A position that is no class stays a target: its slope is as large as the position.",
        "curator/records/admission.py",
        "np.where((y >= 0) & (y < self.n_classes) & (y == np.floor(y)), y, np.nan)",
        "np.where(y == y, y, np.nan)",
        "tests/curator/records/test_stream.py::test_a_position_of_no_class_makes_its_record_null[2.0]",
        "Arrays are not equal",
    ),
    bug(
        "a type that a mask decides",
        "A masked array in which nothing is masked is read as any other array: types and errors tell whether it is so.",
        "curator/records/admission.py",
        "        return _unmasked(X)\n",
        "        return _unmasked(X) if np.ma.is_masked(X) else X.data\n",
        "tests/curator/records/test_containers.py::test_the_type_of_a_masked_array_decides_and_not_its_mask[no cell]",
        "dtype",
    ),
    bug(
        "negative counts",
        "Poisson losses take targets below 0, where their slopes are steeper than the bound that noise is scaled by.",
        "curator/private_data.py",
        "            refuse_negative_counts(self.bounds.target)",
        "            pass",
        "tests/curator/test_private_data.py::"
        "test_the_bound_on_slopes_holds_for_every_target_that_is_admitted[Poisson(limit=1.0)-(-3.0, 3.0)]",
        "<= most",
    ),
    bug(
        "a center that is lost",
        "Features are centered at the middle of their range, and the intercept does not take the center back.",
        "curator/records/recoding.py",
        " * w[features] - self.center @ slopes + self.target_center\n",
        " * w[features] + self.target_center\n",
        "tests/models/test_centering.py::test_the_shifted_table_is_the_same_problem[DPRidge]",
        "Not equal to tolerance",
    ),
    bug(
        "a target's center that is lost",
        "A numeric target is centered at the middle of its range, and the intercept does not take the center back.",
        "models/fit.py",
        "target_center=target_center, target_scale=target_scale)",
        "target_scale=target_scale)",
        "tests/models/test_centering.py::test_the_shifted_targets_are_the_same_problem",
        "Not equal to tolerance",
    ),
    bug(
        "a center that is subtracted twice",
        "A row is centered before it is encoded, and then again: every value lands on the end of its range.",
        "curator/records/admission.py",
        "            return np.asarray(block - self.center)\n",
        "            return np.asarray(block - 2.0 * self.center)\n",
        "tests/models/test_centering.py::test_the_shifted_table_is_the_same_problem[DPRidge]",
        "Not equal to tolerance",
    ),
    bug(
        "n from the data",
        "Under add_remove the number of records is read from the table.",
        "curator/private_data.py",
        "        if not neighbors.n_is_public:\n            return declared\n",
        "        if not neighbors.n_is_public:\n            return declared or int(self.__rows.shape[0])\n",
        f"{_REPLAY}[logistic-add_remove]",
        "attribute: coef_",
    ),
    bug(
        "n of a stream from the data",
        "Under add_remove a stream that is read once may end elsewhere than declared, and an error says so.",
        "curator/private_data.py",
        "        if rows.once and not neighbors.n_is_public:\n",
        "        if False:\n",
        "tests/curator/tables/test_frames.py::test_the_number_of_rows_is_not_told_under_add_remove",
        "as many rows as the schema declares",
    ),
    bug(
        "classes from the data",
        "Labels that were not declared are read from y.",
        "models/base.py",
        "        bounds, loss = self._declared()\n        warn_of_autolog()\n",
        '        if getattr(self, "classes", ()) is None and declared(self.bounds).classes is None:\n'
        "            self.classes = tuple(np.unique(y).tolist())\n"
        "        bounds, loss = self._declared()\n        warn_of_autolog()\n",
        "tests/models/test_fit.py::test_classes_must_be_declared[DPLogisticRegression]",
        "DID NOT RAISE",
    ),
    bug(
        "labels that are no class",
        "A score takes a stream's labels as they are: one that was not declared ends the score with an error.",
        "curator/metrics/row_values.py",
        "(self.model, margins, self.model.valid_targets(targets))",
        "(self.model, margins, targets)",
        "tests/promises/test_sensitivity.py::test_every_score_in_other_containers_and_by_group[brier-stream]",
        "label outside the set",
    ),
    bug(
        "a row in every group",
        "A row's number is counted in the place of each group, so that groups are not free.",
        "curator/metrics/row_values.py",
        "    cells = 2 * place[inside, None] + np.arange(2)\n",
        "    squares = np.tile(squares, size)\n"
        "    ends = size * ends\n"
        "    cells = np.tile(np.arange(2 * size), (len(squares), 1))\n",
        "tests/models/test_scores.py::test_a_row_is_in_one_group_only[replace_one]",
        "assert",
    ),
    bug(
        "target range from the data",
        "A range that was not declared is read from y.",
        "models/base.py",
        "        bounds, loss = self._declared()\n        warn_of_autolog()\n",
        '        if getattr(self, "target", ()) is None and declared(self.bounds).target is None:\n'
        "            self.target = (float(min(y)), float(max(y)))\n"
        "        bounds, loss = self._declared()\n        warn_of_autolog()\n",
        "tests/models/test_fit.py::test_targets_must_be_declared[DPLinearRegression]",
        "DID NOT RAISE",
    ),
    bug(
        "target range from the data, in the curator",
        "The same behind the estimators, for whoever opens the records with a plan of their own.",
        "curator/private_data.py",
        "        if self.bounds.target is None:\n",
        "        if self.bounds.target is None:\n"
        "            return float(np.min(self.__rows.y)), float(np.max(self.__rows.y))\n"
        "        if self.bounds.target is None:\n",
        "tests/promises/mutants/test_killers.py::test_a_curator_reads_no_target_range_from_the_data",
        "DID NOT RAISE",
    ),
    bug(
        "NaN passes the clip",
        "Infinite values make a record null, and a missing value does not.",
        "curator/kernels/encode.py",
        "finite &= abs(source[j]) < np.inf  # False for NaN too",
        "finite &= abs(source[j]) != np.inf",
        "tests/promises/test_hostile_records.py::test_a_bad_value_makes_its_record_null_and_nothing_shows[nan]",
        "exact.tolist() == alone.tolist()",
    ),
    bug(
        "an unknown label is a class",
        "A label outside the declared set counts as the first class.",
        "curator/records/admission.py",
        "    out = np.full(len(labels), np.nan)\n",
        "    out = np.zeros(len(labels))\n",
        "tests/promises/test_hostile_records.py"
        "::test_a_label_outside_the_declared_makes_its_record_null[one output-ndarray-int8]",
        "assert measure(GOOD, y, BOUNDS, loss).exact.tolist() == alone.tolist()",
    ),
    bug(
        "a cell in an exception",
        "A cell that is no number is named in an error.",
        "schema/cell_meaning.py",
        "    try:\n        return convert(cell)\n"
        "    except Exception:  # an integer beyond doubles, a signaling NaN, a text that is no number\n"
        "        return math.nan\n",
        "    return convert(cell)\n",
        "tests/promises/test_hostile_records.py::test_a_cell_that_is_no_number_makes_the_record_null_in_silence[str-SECRET]",
        "ValueError: could not convert string to float",
    ),
    bug(
        "a warning about a record",
        "Records that do not count are mentioned in a warning.",
        "curator/records/admission.py",
        "    valid = np.isfinite(targets)\n",
        "    valid = np.isfinite(targets)\n"
        "    if not valid.all():\n"
        "        __import__('warnings').warn('some records have no target', stacklevel=2)\n",
        f"{_REPLAY}[logistic-zero_out]",
        "warned",
    ),
    bug(
        "an attribute with a value of the data",
        "The fitted model keeps the mean of the targets for convenience.",
        "models/base.py",
        "        self._finish(bounds)\n",
        "        self.mean_target_ = float(np.nanmean(np.asarray(y, dtype=float)))\n        self._finish(bounds)\n",
        "tests/promises/mutants/test_killers.py::test_the_audit_by_replay_refutes_nothing",
        "attribute: mean_target_",
    ),
    bug(
        "a recipe that counts exactly",
        "Under add_remove the default divides by the number of records in place of a noisy one.",
        "default/recipe.py",
        "            n = public_count(curator)\n",
        "            n = float(curator._session.engine.n_units)\n",
        "tests/promises/test_sensitivity.py::test_recipes[recipe: weighted-squared-add_remove]",
        "of its sensitivity",
    ),
    bug(
        "a radius from the records",
        "Weighted steps count rows in full as far as the rows of this table reach.",
        "default/recipe.py",
        "reach = min(self.weight_radius * rows.length, ",
        "reach = (1 + 1e-9 * curator._session.admitted.records.norms.sum()) * min(self.weight_radius * rows.length, ",
        "tests/promises/test_sensitivity.py::test_recipes[recipe: weighted-logistic-add_remove]",
        "another lattice",
    ),
    bug(
        "a radius of clipped steps from the records",
        "Clipped steps count rows in full as far as the rows of this table reach.",
        "default/recipe.py",
        "reach = self.row_radius * rows.length\n",
        "reach = 0.1 * self.row_radius * rows.length * (1 + curator._session.admitted.records.norms.sum() % 7)\n",
        "tests/promises/test_sensitivity.py::test_recipes[recipe: clipped-logistic-replace_one]",
        "of its sensitivity",
    ),
    bug(
        "a calibration from the records",
        "Calibration starts where the records' own lengths say, not where released values do.",
        "default/recipe.py",
        "noises=answers, penalty=penalty, start=rows.margin, evidence=evidence, unsure=unsure,\n",
        "noises=answers, penalty=penalty, evidence=evidence, unsure=unsure,"
        " start=rows.margin + 1e-9 * float(curator._session.admitted.records.norms.sum()),\n",
        "tests/promises/test_sensitivity.py::test_recipes[recipe: clipped-logistic-replace_one]",
        "attribute: coef_",
    ),
    bug(
        "ranges from the data",
        "Declared ranges are replaced by the largest value in the table.",
        "curator/private_data.py",
        "        if is_stream(X) and not (y is groups is weights is offsets is None):\n",
        "        bounds = Bounds(float(np.nanmax(np.abs(X))), classes=bounds.classes)\n"
        "        if is_stream(X) and not (y is groups is weights is offsets is None):\n",
        f"{_REPLAY}[logistic-replace_one]",
        "attribute: ",
    ),
    bug(
        "missing cells are refused",
        "A table with a missing cell is an error: it tells that somebody's cell is missing.",
        "curator/records/admission.py",
        "    array = values if isinstance(values, np.ndarray) else as_array(values)\n"
        '    if array.dtype.kind in "fiub":\n',
        "    array = values if isinstance(values, np.ndarray) else as_array(values)\n"
        '    if array.dtype.kind == "f" and not np.isfinite(array).all():\n'
        '        raise ValueError("Input X contains NaN.")\n'
        '    if array.dtype.kind in "fiub":\n',
        f"{_REPLAY}[logistic-replace_one]",
        "raised",
    ),
    bug(
        "a line about the records",
        "The largest target is printed for information.",
        "curator/records/admission.py",
        "    valid = np.isfinite(targets)\n",
        "    valid = np.isfinite(targets)\n    print('records without a target:', int((~valid).sum()))\n",
        f"{_REPLAY}[logistic-zero_out]",
        "printed",
    ),
    bug(
        "a log entry about the records",
        "How many records have no target is logged.",
        "curator/records/admission.py",
        "    valid = np.isfinite(targets)\n",
        "    valid = np.isfinite(targets)\n"
        "    __import__('logging').getLogger('discreet').warning('%d records', int(valid.sum()))\n",
        f"{_REPLAY}[logistic-zero_out]",
        "logged",
    ),
    bug(
        "noise by the records",
        "The noise multiplier follows the lengths of the rows in this table.",
        "curator/session.py",
        "unit_for(self.multiplier(release), factor, clip, self.largest_n, largest)",
        "unit_for(\n"
        "                self.multiplier(release) * (1 + 1e-6 * float(self.admitted.records.norms.sum())),\n"
        "                factor,\n"
        "                clip,\n"
        "                self.largest_n,\n"
        "                largest,\n"
        "            )",
        f"{_REPLAY}[logistic-replace_one]",
        "another lattice",
    ),
)
