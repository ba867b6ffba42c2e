"""Bugs in what is claimed: prices too low, answers that nobody paid for, certificates that say something else."""

from tests.promises.mutants.mutant import Edit, Mutant

MUTANTS = (
    Mutant(
        "one step uncounted",
        "The price is that of one step less than is taken.",
        (
            Edit(
                "accounting/plan.py",
                "inner = Gaussian(scaled, self.count)",
                "inner = Gaussian(scaled, max(1, self.count - 1))",
            ),
        ),
        ("tests/promises/test_sensitivity.py::test_every_pair_of_neighbors[logistic-zero_out]",),
        "paid for",
    ),
    Mutant(
        "one answer too many",
        "A curator answers once more than was planned.",
        (Edit("curator/session.py", "(fixed and entry.left < count)", "(fixed and entry.left < count - 1)"),),
        ("tests/curator/test_curator.py::test_one_too_many_is_refused",),
        "DID NOT RAISE",
    ),
    Mutant(
        "noises of one query from the end",
        "Answers to a query take the noises that the plan lists for it in another order than it lists them.",
        (
            Edit(
                "curator/session.py",
                "entries = self._schedule.get(query, [])\n",
                "entries = self._schedule.get(query, [])[::-1]\n",
            ),
        ),
        ("tests/curator/test_session.py::test_answers_take_the_noises_in_the_order_of_the_plan[noises0]",),
        "pytest.approx(expected, rel=1e-6)",
    ),
    Mutant(
        "an answer taken off another entry",
        "What is answered with the noise of a plan's first entry is taken off its last: the first is never used up.",
        (
            Edit(
                "curator/session.py",
                "        entry.left -= count\n",
                "        self._schedule[query][-1].left -= count\n",
            ),
        ),
        ("tests/curator/test_session.py::test_answers_take_the_noises_in_the_order_of_the_plan[noises1]",),
        "pytest.approx(expected, rel=1e-6)",
    ),
    Mutant(
        "an entry that is never used up",
        "The first entry of a plan answers as often as it is asked, at its own noise.",
        (Edit("curator/session.py", "        entry.left -= count\n", "        entry.left -= count - 1\n"),),
        (
            "tests/default/test_price.py::test_every_planned_answer_is_asked_and_none_else[False-zero_out-softmax-weighted]",
        ),
        "assert set(answers_left(curator).values()) == {0}",
    ),
    Mutant(
        "a lattice kept for another noise",
        "The lattice that was made for a query's first noise serves its other noises too.",
        (
            Edit(
                "curator/session.py",
                "key = (release.query, clip, release.relative_noise, factor)",
                "key = (release.query, clip, 0.0, factor)",
            ),
        ),
        ("tests/curator/test_session.py::test_answers_take_the_noises_in_the_order_of_the_plan[noises2]",),
        "pytest.approx(expected, rel=1e-6)",
    ),
    Mutant(
        "Laplace noise for what is bounded in L2",
        "Sums for effects, bounded in the L2 norm, are answered with Laplace noise, which is priced by the L1 norm.",
        (
            Edit(
                "curator/session.py",
                '**dict.fromkeys(_IN_L2, ("additive",)),',
                "**dict.fromkeys(_IN_L2, _NOISE),",
            ),
        ),
        (
            "tests/promises/test_prices.py::"
            "test_a_sum_is_bounded_in_the_norm_that_its_noise_is_priced_by[noisy_curvature-zero_out-laplace]",
        ),
        "assert ratio <= 1",
    ),
    Mutant(
        "a stage under a filter for nothing",
        "What a stage releases around an adaptive solver is answered and not charged to the filter.",
        (Edit("curator/session.py", "self.filter.charge(query, self._fixed_rho(release, count))", "pass"),),
        (
            "tests/solvers/stages/test_adaptive.py::test_a_stage_is_charged_to_the_filter_by_its_shares[logistic-whitened]",
        ),
        "assert",
    ),
    Mutant(
        "a check outside the lock",
        "Two threads that ask at once are both given the last answer.",
        (
            Edit(
                "curator/curator.py",
                "        with self._session.lock:\n            return within_memory(",
                "        if True:\n            return within_memory(",
            ),
        ),
        ("tests/curator/test_curator.py::test_two_threads_cannot_share_the_last_answer",),
        "len(answers) == 1",
    ),
    Mutant(
        "refund on error",
        "A minimizer that fails is given back, although its failure was an answer.",
        (
            Edit(
                "curator/queries/minimizers.py",
                "    point = minimize(session.engine.whole(), objective, tau).point\n",
                "    try:\n"
                "        point = minimize(session.engine.whole(), objective, tau).point\n"
                "    except Exception:\n"
                "        session._next('noisy_minimizer').left += 1\n"
                "        raise\n",
            ),
        ),
        (
            "tests/solvers/perturbation/test_fail_closed.py::test_an_error_after_the_charge_leaves_the_budget_spent[output]",
        ),
        "DID NOT RAISE PlanViolation",
    ),
    Mutant(
        "determinant dropped",
        "Objective perturbation is priced by its noise alone: the change of variables is left out.",
        (
            Edit(
                "accounting/objective_perturbation.py",
                "    return math.log1p(perturbation.curvature) * UP\n",
                "    return 0.0\n",
            ),
        ),
        ("tests/accounting/test_objective_perturbation_exact.py::test_smoothed_hinge",),
        "assert hinge_worst(lam, sigma, epsilon) <=",
    ),
    Mutant(
        "curvature with the norm in place of its square",
        "Objective perturbation's curvature takes the bound on a row once, where it enters twice.",
        (
            Edit(
                "losses/classification.py",
                "self.sharpness * bound * bound * steepest",
                "self.sharpness * bound * steepest",
            ),
        ),
        (
            "tests/promises/mutants/test_killers.py::test_objective_perturbation_pays_for_the_curvature_of_the_longest_record[7.0-None]",
        ),
        ".curvature >= unclipped.max() / 3.0",
    ),
    Mutant(
        "calibration above the budget",
        "The search for the noise ends on a price a little above the budget.",
        (
            Edit(
                "accounting/priced_plan.py",
                "        if spent <= target:\n",
                "        if spent <= target * (1 + tolerance):\n",
            ),
        ),
        ("tests/accounting/test_pricing.py::test_full_batch_round_trip",),
        "assert epsilon * (1 - 1e-8) <= spent <= epsilon",
    ),
    Mutant(
        "Renyi conversion at the wrong order",
        "The conversion to epsilon divides by the order in place of the order less one.",
        (
            Edit(
                "accounting/rdp.py",
                "np.log1p(-1 / tried) - (math.log(delta) + np.log(tried)) / (tried - 1)",
                "np.log1p(-1 / tried) - (math.log(delta) + np.log(tried)) / tried",
            ),
        ),
        ("tests/accounting/test_rdp.py::test_curve_search_is_close_to_the_continuous_one",),
        "== pytest.approx(5.22153444, rel=1e-2)",
    ),
    Mutant(
        "selection priced as one run",
        "The best of several runs costs what one of them costs.",
        (
            Edit(
                "models/search.py",
                "(RepeatedSelection(kinds(runs), law.mean, law.shape),)",
                "kinds(runs)[0]",
            ),
            Edit(
                "models/search.py",
                "mu = selection.run_mu(law, total.epsilon, total.delta)",
                "mu = gaussian.mu_of(total.epsilon, total.delta)",
            ),
        ),
        ("tests/models/test_search.py::test_the_certificate",),
        "assert isinstance(event, RepeatedSelection)",
    ),
    Mutant(
        "filter rounds down",
        "Charges to an adaptive run's total are rounded down, so that many tiny ones are free.",
        (
            Edit(
                "accounting/plan.py",
                "math.ceil(Fraction(rho) * 2**_UNIT_BITS)",
                "math.floor(Fraction(rho) * 2**_UNIT_BITS)",
            ),
        ),
        ("tests/accounting/test_plan.py::test_many_tiny_charges_are_each_rounded_up",),
        "assert budget.spent == 1000 * UNIT",
    ),
    Mutant(
        "output noise divided by n",
        "The minimizer's sensitivity is divided by the number of records twice.",
        (
            Edit(
                "curator/queries/minimizers.py",
                "    sensitivity = (session.factor * bound + 2 * tau) / problem.total\n",
                "    sensitivity = (session.factor * bound + 2 * tau) / problem.total / problem.n\n",
            ),
        ),
        ("tests/promises/mutants/test_killers.py::test_the_audit_of_a_model_refutes_nothing",),
        "REFUTED",
    ),
    Mutant(
        "an objective that the plan does not cover",
        "The curator minimizes with less regularization than was priced.",
        (
            Edit(
                "accounting/objective_perturbation.py",
                "    return needed.curvature <= planned.curvature\n",
                "    return True\n",
            ),
        ),
        (
            "tests/solvers/stages/test_compositions.py::test_the_plan_covers_what_is_minimized_on_recoded_rows[squared-penalty]",
        ),
        "DID NOT RAISE",
    ),
    Mutant(
        "another delta in the certificate",
        "The certificate states a smaller delta than the noise was calibrated for.",
        (
            Edit(
                "accounting/certificate.py",
                "            delta=priced.budget.delta,\n",
                "            delta=priced.budget.delta**2,\n",
            ),
        ),
        ("tests/models/test_fit.py::test_a_given_delta_is_the_delta_used",),
        "certificate_.delta == 1e-7",
    ),
    Mutant(
        "delta rounded in the text",
        "The text of the certificate shows a rounded delta, which may be smaller than the one used.",
        (
            Edit(
                "accounting/certificate.py",
                "delta = {certificate.delta!r}, per {unit}",
                "delta = {certificate.delta:.0e}, per {unit}",
            ),
        ),
        ("tests/promises/mutants/test_killers.py::test_the_text_of_a_certificate_shows_every_digit_of_delta[1.4e-07]",),
        'per record" in made.text()',
    ),
    Mutant(
        "seeded noise not stamped",
        "A model fitted with a public seed is certified as private.",
        (
            Edit(
                "curator/session.py",
                "    seeded = () if entropy.is_private else (",
                "    seeded = () if True else (",
            ),
            Edit("curator/lattice/entropy.py", '    name = "seeded ChaCha20 (for tests)"\n', '    name = "ChaCha20"\n'),
        ),
        ("tests/models/test_fit.py::test_seeded_noise_is_stamped[DPLogisticRegression]",),
        'assert certificate.stamp.startswith("NOT PRIVATE")',
    ),
    Mutant(
        "choices under a filter for nothing",
        "The filter is charged for gradients, and not for the choices between them.",
        (
            Edit(
                "curator/session.py",
                "            self.filter.charge(query, rho)\n            return",
                "            if query == 'noisy_gradient':\n                self.filter.charge(query, rho)\n"
                "            return",
            ),
        ),
        ("tests/solvers/agd/test_adaptive_plan.py::test_whatever_is_asked_the_books_are_right[choice0]",),
        "assert",
    ),
    Mutant(
        "less noise than an answer's rho pays for",
        "The filter is charged for half of what the noise of the answer costs.",
        (
            Edit(
                "curator/session.py",
                "return self._noisier(release, rho)",
                "return self._noisier(release, 2 * rho)",
            ),
        ),
        ("tests/solvers/test_agd.py::test_a_gradient_has_the_noise_of_its_rho[0.02-0.4-zero_out]",),
        "assert",
    ),
)
