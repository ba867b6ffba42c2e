"""Bugs in the noise: too little, the same twice, of another law, or seen before it is drawn."""

from tests.promises.mutants.mutant import bug

_TWICE = "tests/promises/test_sensitivity.py::test_noise_is_never_used_twice"
_DRAW = "        return draw(count, unit.m, self.entropy)\n"

MUTANTS = (
    bug(
        "noise of a mean on a sum",
        "The noise is divided by n, as for a mean, and added to a sum.",
        "curator/queries/gradients.py",
        "exact + drawn.reshape(exact.shape))",
        "exact + drawn.reshape(exact.shape) // session.largest_n)",
        "tests/promises/test_noise_law.py::test_every_query_has_the_noise_that_was_planned[noisy_gradient]",
        "> SIGNIFICANCE",
    ),
    bug(
        "noise reused between steps",
        "The noise of the first step is kept for the others.",
        "curator/session.py",
        _DRAW,
        "        kept = self.__dict__.setdefault('_drawn', {})\n"
        "        if (count, unit.m) not in kept:\n"
        "            kept[count, unit.m] = draw(count, unit.m, self.entropy)\n"
        "        return kept[count, unit.m]\n",
        f"{_TWICE}[gd: steps]",
        "used more than once",
    ),
    bug(
        "noise reused between classes",
        "One vector of noise serves every class.",
        "curator/queries/gradients.py",
        "drawn = session.noise(release, unit, w.size)\n",
        "drawn = np.tile(session.noise(release, unit, len(w)), w.size // len(w))\n",
        f"{_TWICE}[gd: steps]",
        "used more than once",
    ),
    bug(
        "intercept without noise",
        "The last column, the intercept's, is released as it is.",
        "curator/queries/gradients.py",
        "exact + drawn.reshape(exact.shape))",
        "exact + drawn.reshape(exact.shape) * (np.arange(len(w)) < len(w) - 1))",
        f"{_TWICE}[gd: steps]",
        "used more than once",
    ),
    bug(
        "random words copied by fork",
        "Random words are fetched in advance, and a forked process inherits those that its parent will use.",
        "curator/noise.py",
        "        return _key_stream(np.frombuffer(parts, _UINT32), count, forget=True)\n",
        "        pool = SystemEntropy.__dict__.get('pool', b'')\n"
        "        if len(pool) < 8 * count:\n"
        "            pool = os.urandom(max(8 * count, 1 << 20))\n"
        "        SystemEntropy.pool = pool[8 * count :]\n"
        "        return np.frombuffer(pool[: 8 * count], dtype=np.uint64)\n",
        "tests/promises/test_entropy.py::test_no_repetition_across_forks[fresh]",
        "all_differ(batches)",
    ),
    bug(
        "a key used for many requests",
        "The cipher's key is read once per process: every request gets the same words.",
        "curator/noise.py",
        "        parts[:32] = os.urandom(32)\n",
        "        if not hasattr(SystemEntropy, 'key'):\n"
        "            SystemEntropy.key = os.urandom(32)\n"
        "        parts[:32] = SystemEntropy.key\n",
        "tests/promises/test_entropy.py::test_no_repetition_across_calls_answers_and_threads",
        "assert all_differ([fresh() for _ in range(50)])",
    ),
    bug(
        "a counter that stands still",
        "The counter does not go on after sixteen blocks: a long request repeats its first words.",
        "curator/kernels/samplers.py",
        "uint32(first + start // 8)",
        "uint32(first)",
        "tests/curator/test_known_answers.py::test_the_kernels_as_they_are_pass",
        "the cipher fails its known answers",
    ),
    bug(
        "variance for standard deviation",
        "The random linear term of objective perturbation gets the root of its standard deviation.",
        "curator/queries/minimizers.py",
        "math.nextafter(multiplier * sensitivity, math.inf) * 2.0**-40",
        "math.nextafter(math.sqrt(multiplier * sensitivity), math.inf) * 2.0**-40",
        "tests/solvers/perturbation/test_noise.py::test_the_linear_term_has_the_planned_scale[replace_one]",
        "assert two_sided(float(np.square(terms).sum()), terms.size) > CHANCE",
    ),
    bug(
        "noise in floating point",
        "Gaussian noise is drawn with numpy and rounded to the lattice: it has holes where doubles have.",
        "curator/noise.py",
        "    return _fill(samplers.rounded_gaussian, _normal_table(), count, m, 9, entropy)\n",
        "    drawn = np.random.default_rng(entropy.words(4)).standard_normal(count)\n"
        "    return np.rint(drawn * 2.0**m).astype(np.int64)\n",
        "tests/promises/test_noise_law.py::test_no_grid_coarser_than_the_lattice",
        "assert stats.binomtest(ones, z.size).pvalue > SIGNIFICANCE / 100",
    ),
    bug(
        "noise a tenth too small",
        "Gaussian noise has nine tenths of the deviation that was priced.",
        "curator/session.py",
        _DRAW,
        "        return draw(count, unit.m, self.entropy) * 9 // 10\n",
        "tests/solvers/test_agd.py::test_a_gradient_has_the_noise_of_its_rho[1e-09-3.0-replace_one]",
        "deviation_p(",
    ),
    bug(
        "noise three tenths too small",
        "Gaussian noise has seven tenths of the deviation that was priced.",
        "curator/session.py",
        _DRAW,
        "        return draw(count, unit.m, self.entropy) * 7 // 10\n",
        "tests/promises/mutants/test_killers.py::test_the_audit_of_a_gradient_refutes_nothing[gaussian]",
        "REFUTED",
    ),
    bug(
        "Laplace noise of half the scale",
        "The lattice's exponent is off by one where noise is pure.",
        "curator/session.py",
        _DRAW,
        "        return draw(count, unit.m - self.uses_l1(release), self.entropy)\n",
        "tests/promises/mutants/test_killers.py::test_the_audit_of_a_gradient_refutes_nothing[laplace]",
        "REFUTED",
    ),
    bug(
        "a sampler of another scale",
        "The sampler of pure noise is off by a factor of two: no curator with a pure budget opens.",
        "curator/noise.py",
        "_fill(samplers.discrete_laplace, _geometric_table(), count, m, 6, entropy)",
        "_fill(samplers.discrete_laplace, _geometric_table(), count, m - 1, 6, entropy)",
        "tests/promises/mutants/test_killers.py::test_the_audit_of_a_gradient_refutes_nothing[laplace]",
        "fails its known answers",
    ),
    bug(
        "noise of a mean on coordinate sums",
        "The noise of fused coordinate steps is divided by n, and then the noisy sum is.",
        "curator/queries/gradients.py",
        "        noise=session.noise(release, unit, columns.size, answers=columns.size),\n",
        "        noise=session.noise(release, unit, columns.size, answers=columns.size) // int(n),\n",
        "tests/promises/mutants/test_killers.py::test_the_audit_of_a_transcript_refutes_nothing",
        "REFUTED",
    ),
    bug(
        "a count without noise",
        "Under add_remove the released number of records is exact.",
        "curator/queries/counts.py",
        "count = session.release(release, unit, exact, exact + drawn)[0] * unit.step",
        "count = session.release(release, unit, exact, exact + 0 * drawn)[0] * unit.step",
        "tests/promises/test_noise_law.py::test_every_query_has_the_noise_that_was_planned[noisy_count]",
        "> SIGNIFICANCE",
    ),
    bug(
        "a share without noise",
        "How many gradients are within a clip is told exactly.",
        "curator/queries/gradients.py",
        "return float(session.release(release, unit, exact, exact + drawn)[0] * unit.step)",
        "return float(session.release(release, unit, exact, exact)[0] * unit.step)",
        "tests/promises/test_noise_law.py::test_every_query_has_the_noise_that_was_planned[noisy_share_within]",
        "> SIGNIFICANCE",
    ),
    bug(
        "wrong sign in noisy min",
        "The least score is found by negation, and the noise is on one side only.",
        "curator/queries/choices.py",
        "exact + session.discrete_laplace(len(points), unit.m)",
        "exact - np.abs(session.discrete_laplace(len(points), unit.m))",
        "tests/solvers/test_agd.py::test_frequencies_are_those_of_the_law[noisy_max]",
        "assert choice_p(choice) > SIGNIFICANCE",
    ),
    bug(
        "everybody in a sample",
        "The price is that of a Poisson sample, and all records are drawn.",
        "curator/session.py",
        "        return noise.poisson_sample(self.engine.n_units, numerator, self.entropy)\n",
        "        return np.arange(self.engine.n_units)\n",
        "tests/promises/mutants/test_killers.py::test_a_planned_sample_is_drawn",
        "assert abs(drawn.sum() - expected) < 6 * math.sqrt(expected)",
    ),
    bug(
        "empty batch skipped",
        "Where the sample is empty nothing is released: the step says that nobody was drawn.",
        "curator/queries/gradients.py",
        "    exact = session.engine.total(query)\n",
        "    if query.units is not None and query.units.size == 0:\n"
        "        return np.zeros(w.shape)\n"
        "    exact = session.engine.total(query)\n",
        "tests/promises/test_sensitivity.py::test_the_only_record_removed[sgd: steps]",
        "releases against",
    ),
    bug(
        "gradient normalized before it is averaged",
        "A measured gradient loses its length, and then is averaged as if it had it.",
        "solvers/agd.py",
        "    return Measured(curator.noisy_gradient(w, clip=clip, rho=rho), rho)\n",
        "    found = curator.noisy_gradient(w, clip=clip, rho=rho)\n"
        "    return Measured(found / max(float(np.linalg.norm(found)), 1e-300), rho)\n",
        "tests/solvers/test_agd.py::test_the_measured_gradient_keeps_its_length",
        "Not equal to tolerance rtol=1e-09",
    ),
    bug(
        "noise mirrored within a matrix",
        "Half of a second moment's entries have the noise of the others, so that both together are less noisy.",
        "curator/queries/moments.py",
        "    scale = 1.0 / (unit.step * float(grid.one) ** power)\n",
        "    if moment == 'outer':\n"
        "        drawn = (np.triu(drawn.reshape(p, p)) + np.triu(drawn.reshape(p, p), 1).T).ravel()\n"
        "    scale = 1.0 / (unit.step * float(grid.one) ** power)\n",
        "tests/promises/test_sensitivity.py::test_noise_is_never_used_twice[gd: whitened]",
        "used more than once",
    ),
)
