"""Bugs in the ledger: charges that come late, come back, are too small, or are not made."""

from tests.promises.mutants.mutant import Edit, Mutant, bug

MUTANTS = (
    bug(
        "debit after reading",
        "The records are read, and then the fit is charged.",
        "models/fit.py",
        "    reservation = data.reserve(priced, claims, **words)\n",
        "    data._PrivateData__admitted(loss, None, priced, None)\n"
        "    reservation = data.reserve(priced, claims, **words)\n",
        "tests/promises/crash/test_reading.py::test_the_charge_is_on_disk_before_the_first_record_is_read",
        "set(seen) == {1}",
    ),
    bug(
        "no lock in the ledger",
        "Writers begin as readers: what they check is old by the time they write.",
        "ledger/sqlite.py",
        'return _Transaction(self._connected, "BEGIN IMMEDIATE", admit=',
        'return _Transaction(self._connected, "BEGIN", admit=',
        "tests/promises/mutants/test_killers.py::test_a_second_writer_of_a_ledger_waits_for_the_first",
        "assert entered == [False]",
    ),
    bug(
        "no cap in the database",
        "The database takes charges beyond the cap, where a slip in Python asks it to.",
        "ledger/store.py",
        '"charges = 0 OR (adds = 1 AND ',
        '"charges >= 0 OR (adds = 1 AND ',
        "tests/promises/crash/test_controls.py::test_the_databases_own_rules_catch_what_python_lets_slip",
        "== [False, False, False, False, True]",
    ),
    bug(
        "what was spent may fall",
        "The database lets an account's spending be set back.",
        "ledger/store.py",
        'return f"{less} OR NEW.charges',
        'return f"NEW.charges',
        "tests/promises/crash/test_tampering.py::test_the_database_refuses[UPDATE account SET gaussian_spent = 0]",
        "DID NOT RAISE IntegrityError",
    ),
    bug(
        "a failed request is free",
        "A request whose run failed may be run again under the same charge.",
        "ledger/ledger.py",
        "            _keep_release(at, charge_id, None)\n",
        "            pass\n",
        "tests/promises/crash/test_kills.py::test_a_fit_that_fails_stays_charged_and_its_request_is_refused_for_good[file-RuntimeError]",
        "DID NOT RAISE",
    ),
    Mutant(
        "a request answered with fresh noise",
        "The same request runs again under its old charge, and its new answer is published.",
        (
            Edit(
                "curator/private_data.py",
                "            if reservation.release is not None:\n"
                "                raise AlreadyReleased(reservation.release)\n",
                "",
            ),
            Edit(
                "models/fit.py",
                "    return Fitted.from_text(reservation.settle(fitted.text()))\n",
                "    reservation.settle(fitted.text())\n    return fitted\n",
            ),
        ),
        ("tests/ledger/test_fits.py::test_the_same_request_is_the_same_model_for_one_charge",),
        "assert (first.coef_ == second.coef_).all()",
    ),
    bug(
        "charges rounded down",
        "What a fit costs is rounded down to the ledger's unit.",
        "ledger/account.py",
        "return min(math.ceil(value * UNIT), NEVER)",
        "return min(math.floor(value * UNIT), NEVER)",
        "tests/ledger/test_account.py::test_charges_are_just_above_the_references[zcdp-orders0]",
        "assert exact <= charged",
    ),
    bug(
        "all of delta for every filter",
        "Each of the ledger's filters has the whole delta, as if it were the only one.",
        "ledger/account.py",
        "GAUSSIAN_SHARE, RENYI_SHARE = 0.5, 0.25",
        "GAUSSIAN_SHARE, RENYI_SHARE = 1.0, 1.0",
        "tests/ledger/test_adversary.py::test_the_attacked_filter_is_the_account",
        "assert spent.within_a_share(account.caps) == admits(counts)",
    ),
    bug(
        "a clone with an account of its own",
        "Copying an estimator copies the account: each copy may spend the whole cap.",
        "ledger/ledger.py",
        "        return self  # a copy of an account would be a second budget\n",
        "        copied = Ledger(self._address)\n"
        "        if str(self._address) == MEMORY:\n"
        "            self._store._connection.backup(copied._store._connection)\n"
        "        return copied\n",
        "tests/ledger/test_everywhere.py::test_pipelines_clones_and_copies_share_the_account[:memory:]",
        "assert ledger.spent(DATASET).fits == number",
    ),
    bug(
        "fingerprint in the certificate",
        "The certificate tells by a digest which records it was.",
        "models/fit.py",
        "            certificate = certify(curator.promise(priced, data.facts(priced), claim), reservation)\n",
        "            from discreet.curator.private_data import fingerprint_of\n"
        "            facts = data.facts(priced)\n"
        "            if reservation is not None:\n"
        "                rows = data._PrivateData__rows.X\n"
        "                facts['seen'] = fingerprint_of(rows, reservation.ledger.key()).stores()[0]\n"
        "            certificate = certify(curator.promise(priced, facts, claim), reservation)\n",
        "tests/ledger/test_leaks.py::test_nothing_that_an_analyst_sees_depends_on_the_records[plain]",
        "Finding(kind='attribute', text='certificate",
    ),
)
