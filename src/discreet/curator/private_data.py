"""The closed wall: ``PrivateData`` takes a table and declared facts, and gives out a ``Curator`` for a plan."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from discreet.accounting.certificate import CHECKED, CHECKS, ESTIMATED_RANGES, QUERY, check_declarations
from discreet.accounting.plan import AdaptivePlan, Plan
from discreet.accounting.pricing import PricedPlan, require_priced
from discreet.bounds import Bounds, Domain, Moments, refuse_negative_counts
from discreet.budget import Neighbors
from discreet.curator.curator import Claim, Curator, promise
from discreet.curator.engines import AlikeRows, Engine, engine_for
from discreet.curator.engines import opened as engine_of
from discreet.curator.known_draws import check_planned
from discreet.curator.lattice import COARSE
from discreet.curator.noise import current_entropy
from discreet.curator.queries.counts import CellCounts, checks_of, with_ranges
from discreet.curator.records import admission
from discreet.curator.records.row_sketches import EMPTY, RowHashes, RowSketch, row_secrets
from discreet.curator.records.storage import (
    Storage,
    bytes_on_disk,
    check_scratch,
    current_limits,
    rows_per_part,
    storage_for,
    within_memory,
)
from discreet.curator.records.stream import (
    CHANGED,
    PRIVATE_ROWS,
    ArrayRows,
    Encoding,
    RecordStream,
    RowsElsewhere,
    admit_stream,
    is_stream,
    rows_of_each,
)
from discreet.curator.session import check_answers_match_prices
from discreet.errors import AlreadyReleased, MissingBounds, PlanViolation, Unsupported
from discreet.json_schemas import Json
from discreet.ledger.ledger import Fingerprint, Reservation, account_of, settled
from discreet.losses.base import Loss
from discreet.parameters import Positive, checked, conforms
from discreet.typing import Floats, Integers

_UNPAID = "reading this stream is a release of its own: price PrivateData.with_reading(plan)"


class PrivateData:
    """Records that only a curator reads.

    Parameters
    ----------
    X : array, data frame, scipy sparse matrix or stream of records
        One row per record.
    y : array-like or None
        Labels or numeric targets; None for a stream, which brings its own.
    bounds : Bounds
        What is publicly known of them.
    groups : array-like or None, default=None
        One name per row: all rows of one name are one person, and the unit of privacy is the person. A
        person's loss is the mean over that person's rows.
    weights, offsets : array-like or None, default=None
        A weight and an offset per row, within the ranges that ``bounds`` declares.
    class_weights : sequence of float or None, default=None
        The weight of each class, in the order of the declared classes.
    fit_intercept : bool, default=True
        Whether to append a constant feature, which is clipped, noised and penalized like any other.
    ledger : str, path, Ledger, False or None, default=None
        Every plan is charged there before it is opened. None: the configured ledger, if there is one. False: none.
    dataset : str or None, default=None
        The name under which the records are registered there.

    Examples
    --------
    >>> from discreet import Bounds
    >>> from discreet.curator import PrivateData
    >>> PrivateData([[0.0, 0.5]] * 10, [0, 1] * 5, Bounds(1.0, classes=(0, 1)), ledger=False).unit
    'record'
    """

    @checked
    def __init__(
        self,
        X: object,
        y: object,
        bounds: Bounds,
        *,
        groups: object = None,
        weights: object = None,
        offsets: object = None,
        class_weights: object = None,
        fit_intercept: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        if is_stream(X) and not (y is groups is weights is offsets is None):
            raise Unsupported("a stream brings its own targets, persons, weights and offsets: leave them out")
        self.__rows = rows = X if is_stream(X) else ArrayRows(X, y, groups, weights, offsets)
        for name, ends in (("weights", bounds.weights), ("offsets", bounds.offsets)):
            if name in rows.columns_beside and ends is None:
                raise MissingBounds(f"the range of {name} is not declared: write Bounds(..., {name}=(low, high))")
        if rows.facts and not rows.is_checked:  # a stream's: arrays declare none
            check_declarations(rows.facts)
        self.__is_sparse = rows.is_sparse
        self.__has_offsets = "offsets" in rows.columns_beside
        self.__factors = None if class_weights is None else _class_weights(class_weights, bounds.classes)
        self.__checked: Json | None = None
        self.__storage: Storage | None = None
        self.__n: dict[bool, int | None] = {}
        self.__last_domain: tuple[Neighbors, Loss, Domain] | None = None
        self.__passed: tuple[PricedPlan, Loss] | None = None
        self.__charges: list[tuple[PricedPlan, Reservation | None]] = []  # by ``reserve``, not opened yet: at most one
        self.__ledger = account_of(ledger, dataset)
        self.dataset = dataset
        self.bounds = bounds
        self.unit = rows.unit
        """Whom a guarantee protects: a record, or a person with several."""
        self.n_columns = len(rows.columns)
        if self.n_columns == 0:
            raise Unsupported("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
        names = rows.columns if rows.is_named else None
        self.scaling = admission.scaling_for(bounds, self.n_columns, names, fit_intercept)

    def __offset_loss(self, loss: Loss) -> Loss:
        """Return the loss of targets that bring their offsets along."""
        return loss.with_offsets(self.bounds.offsets) if self.__has_offsets and self.bounds.offsets else loss

    def filled(self) -> "PrivateData":
        """Return the same records with the zeros of a sparse table stored: the container changes, no value does."""
        assert isinstance(self.__rows, ArrayRows)
        admission.check_containers(self.__rows.X, self.scaling)
        dense = copy(self)
        dense.__is_sparse = False  # what is stored is decided here, and done once it is charged for
        dense.__last_domain = dense.__passed = None
        return dense

    def public_n(self, neighbors: Neighbors) -> int | None:
        """Return the number of records (persons): read where neighbors agree on it, else only as declared."""
        if neighbors.n_is_public not in self.__n:
            self.__n[neighbors.n_is_public] = self.__count(neighbors)
        return self.__n[neighbors.n_is_public]

    def __count(self, neighbors: Neighbors) -> int | None:
        declared, rows = self.bounds.n, self.__rows
        if rows.once and not neighbors.n_is_public:
            raise Unsupported(PRIVATE_ROWS)  # later, an error would tell that n is not as declared
        if not neighbors.n_is_public:
            return declared
        if rows.elsewhere is not None:
            n = rows.elsewhere.count()
        else:
            n = int(rows.shape[0])
            if rows.has_persons:
                persons = rows.groups if isinstance(rows, ArrayRows) else rows.persons()
                n = len(admission.grouping(persons, n)[1]) - 1
        if n == 0:
            raise Unsupported("Found array with 0 sample(s) while a minimum of 1 is required.")
        if declared is not None and declared != n:
            raise MissingBounds(
                "the declared n is not the number of records: correct it, or leave it out (public here)"
            )
        return n

    def domain(self, neighbors: Neighbors, loss: Loss) -> Domain:
        """Return what is public of the records in training coordinates; computed once per loss."""
        last = self.__last_domain
        if last is None or last[0] is not neighbors or last[1] is not loss:
            self.__last_domain = last = neighbors, loss, self.__domain(neighbors, loss)
        return last[2]

    def __domain(self, neighbors: Neighbors, loss: Loss) -> Domain:
        bounds, longest = self.scaling.feature_bounds, self.scaling.row_norm
        implied = math.sqrt(float(np.sum(bounds**2)))
        if longest is not None:
            implied = min(implied, math.hypot(longest, 1.0) if self.scaling.intercept else longest)
        self.__offset_loss(loss)  # one that serves no offsets refuses
        target = None
        if loss.task == "classification":
            classes = self.bounds.classes  # the bound on a slope is for this number of classes alone
            if classes is not None and len(classes) != max(2, loss.n_outputs):
                raise Unsupported(
                    "a loss of one margin is for two classes, one of several outputs for as many: declare as many "
                    "classes"
                )
        else:
            center, scale = self.target_place(loss)
            low, high = self.__target_range(loss)
            target = (low - center) / scale, (high - center) / scale
        return Domain(
            feature_bounds=bounds,
            row_norm=implied,
            n=self.public_n(neighbors),
            neighbors=neighbors,
            intercept=self.scaling.intercept,
            n_outputs=loss.n_outputs,
            target_bound=1.0 if target is None else max(abs(target[0]), abs(target[1])),
            ranges=self.scaling.ranges,
            target_range=target,
            sparse=self.__is_sparse,
            grouped=self.__rows.has_persons,
            remote=self.__rows.elsewhere is not None,
            indicators=self.__rows.indicators,
            weighted="weights" in self.__rows.columns_beside
            or self.__factors is not None
            or (self.__has_offsets and loss.offsets_weigh),
        )

    @property
    def declared(self) -> Mapping[str, object]:
        """What a stream's makers declared of its columns; nothing for arrays, whose facts are their bounds."""
        return self.__rows.facts

    def with_reading(self, plan: Plan, *, pure: bool) -> Plan:
        """Return the plan with what reading a stream releases: estimates of private ranges, and checks of its cells.

        An adaptive run decides on its way what an answer costs: it has no room for either, and is not checked.
        """
        if isinstance(plan, AdaptivePlan):
            if self.__rows.estimates is not None:
                raise Unsupported("ranges are estimated under a fixed plan: declare them, or use another solver")
            return plan
        for counts in (self.__rows.estimates, self.__rows.checks):
            if counts is not None:
                plan = replace(plan, releases=(*plan.releases, counts.release(plan, pure=pure)))
        return plan

    def reserve(self, priced: PricedPlan, claims: Sequence[Claim] = (), **words: Any) -> Reservation | None:
        """Charge a priced plan to the ledger, durably, before any record is read; None without a ledger.

        ``claims`` are those of which one will be issued as a certificate: the ledger chains what is known of them now.
        ``words`` are those of ``Ledger.reserve``: charge_id, label, about. A charge that was answered before raises
        AlreadyReleased, with its answer. ``open`` goes on under this charge, once. A charge that was not
        settled may be opened again under its charge, with other noise: two of its answers may never both be seen.
        """
        reservation = None
        if self.__ledger is not None and self.dataset is not None:
            self.__ledger.key()  # missing, it is missed before anything is charged
            promised = [promise(priced, facts, claim) for claim in claims for facts in self.__possible_facts(priced)]
            words = {**words, "unit": self.unit, "certificates": promised}
            reservation = self.__ledger.reserve(self.dataset, priced, **words)
            if reservation.release is not None:
                raise AlreadyReleased(reservation.release)
        self.__charges[:] = [(priced, reservation)]
        return reservation

    def __charged(self, priced: PricedPlan) -> tuple[PricedPlan, Reservation | None] | None:
        """Take the charge of this plan, once: a copy of the data shares the list, and no two threads pop one entry."""
        with suppress(IndexError):
            charge = self.__charges.pop()
            return charge if charge[0] is priced else None
        return None

    def recognize(self, reservation: Reservation | None, rows: object = None) -> None:
        """Let the ledger's owner know whose records were charged for: see ``Ledger.recognize``.

        ``rows`` are the features of a stream that has been read.
        """
        if reservation is not None:
            rows = self.__rows.X if rows is None and isinstance(self.__rows, ArrayRows) else rows
            fingerprint = fingerprint_of(rows, reservation.ledger.key())
            reservation.ledger.recognize(reservation.dataset, fingerprint)

    def read_elsewhere(self, reservation: Reservation | None, n: int | None) -> RowsElsewhere:
        """Have the rows of a stream on a cluster read and kept there, for what must cut them into parts.

        Call it after the charge. Other rows than were counted are refused, where ``n`` is public.
        """
        assert self.__rows.elsewhere is not None
        key = None if reservation is None else reservation.ledger.key()
        rows = self.__rows.elsewhere.read(None if key is None else row_secrets(key))
        if n is not None and rows.n_units != n:
            raise Unsupported(CHANGED)
        if reservation is not None and key is not None:
            reservation.ledger.recognize(reservation.dataset, fingerprint_from(rows.sketch, key))
        return rows

    def __admitted(self, loss: Loss, reservation: Reservation | None, priced: PricedPlan, n: int | None) -> Engine:
        if isinstance(self.__rows, ArrayRows):
            X, groups = self.__rows.X, self.__rows.groups
            X = admission.canonical(X).toarray() if self.__rows.is_sparse and not self.__is_sparse else X
            beside = {name: admission.numbers(column) for name, column in self.__rows.beside.items()}
            if loss.task != "classification":
                y = admission.numbers(self.__rows.y)
            elif self.bounds.classes is None:
                raise MissingBounds("the classes are not declared: write Bounds(..., classes=(0, 1))")
            else:
                y = admission.class_indices(self.__rows.y, self.bounds.classes)
            targets, weights = self.__target_scaling(loss).placed(y, **beside)
            records = admission.admit(X, targets, self.scaling, groups, storage=self.__storage, weights=weights)
            self.recognize(reservation)
            return engine_of(records)
        self.__rows = stream = with_ranges(self.__rows, priced, n)
        checks = checks_of(stream, priced, n)  # its noise is drawn before a row is read
        if stream.elsewhere is None:
            engine = self.__read(stream, loss, reservation, checks)
        else:
            public = n if priced.budget.neighbors.n_is_public else None
            engine = self.__read_elsewhere(stream, loss, reservation, checks, public)
        if checks is not None and stream.checks is not None:
            counts = checks.released()
            self.__checked = stream.checks.described(counts.counts, counts.noise_std)
        return engine

    def __read(
        self, stream: RecordStream, loss: Loss, reservation: Reservation | None, checks: CellCounts | None
    ) -> Engine:
        rows = stream.shape[0], stream.rows_per_record
        sketcher = None if reservation is None else Sketcher(reservation.ledger.key(), *rows)
        watch = None if sketcher is None else sketcher.see
        shares = rows_of_each(stream.persons()) if stream.has_persons and checks is not None else None

        def count(rows: slice, cells: Integers) -> None:
            if checks is not None:
                checks.add(cells, None if shares is None else shares[rows])

        records = admit_stream(stream, self.__target_scaling(loss), self.scaling, watch, count, storage=self.__storage)
        if reservation is not None and sketcher is not None:
            reservation.ledger.recognize(reservation.dataset, sketcher.result())
        return engine_of(records)

    def __read_elsewhere(
        self,
        stream: RecordStream,
        loss: Loss,
        reservation: Reservation | None,
        checks: CellCounts | None,
        n: int | None,
    ) -> Engine:
        """Have the rows encoded where they are; other rows than were counted are refused, where ``n`` is public."""
        assert stream.elsewhere is not None
        secrets = None if reservation is None else row_secrets(reservation.ledger.key())
        how = Encoding(self.scaling, self.__target_scaling(loss), secrets, checks is not None)
        opened = stream.elsewhere.encoded(how)
        engine: Engine = opened.engine
        if checks is not None:
            for seen in opened.seen:
                checks.add_counts(seen.cells)
        if n is not None and engine.n_units != n:
            raise Unsupported(CHANGED)
        if reservation is not None:
            sketch = reduce(add, (seen.sketch for seen in opened.seen), EMPTY)
            reservation.ledger.recognize(reservation.dataset, fingerprint_from(sketch, reservation.ledger.key()))
        return engine

    def check(self, priced: PricedPlan, loss: Loss, *, opens: bool = True) -> None:
        """Refuse what the plan and the containers alone show to be wrong, before anything is charged or read.

        ``opens`` says that ``open`` follows, whose kernels then have to be in order.
        """
        check_answers_match_prices(require_priced(priced).plan, priced.budget)
        rows = self.__rows
        admission.check_targets(rows.target_kinds, self.bounds.classes if loss.task == "classification" else None)
        if isinstance(rows, ArrayRows):
            admission.check_containers(rows.X, self.scaling)
        if not self.__is_sparse and rows.elsewhere is None:  # refuse a folder for scratch files that is no use
            folder, neighbors = current_limits().folder, priced.budget.neighbors
            if self.unit == "person" or not neighbors.n_is_public:  # whatever the number of rows is
                check_scratch(folder)
            elif self.__kept(neighbors):
                check_scratch(folder, bytes_on_disk(int(rows.shape[0]), self.scaling.width, self.scaling.grid))
        if rows.elsewhere is not None:
            rows.elsewhere.check(priced.plan, loss)
        if opens:
            self.domain(priced.budget.neighbors, loss)
            if not isinstance(priced.plan, AdaptivePlan):
                counted = {QUERY: rows.estimates, CHECKS: rows.checks}
                planned = {release.query for release in priced.plan.releases}
                if {query for query, counts in counted.items() if counts is not None} - planned:
                    raise PlanViolation(_UNPAID)
            check_planned(priced.plan, loss, pure=priced.budget.is_pure, sparse=self.__is_sparse)
            self.__passed = priced, loss

    def open(
        self,
        priced: PricedPlan,
        loss: Loss,
        *,
        label: str = "",
        start: Floats | None = None,
        moments: Moments | None = None,
    ) -> Curator:
        """Read the records into a private integer copy behind a curator that answers a priced plan.

        What ``reserve`` charged for this plan is used up; without it the plan is charged now, under this ``label``.
        ``start`` are public or released coefficients that solvers start from, ``moments`` public moments of the
        features: they become part of the domain.
        """
        if self.__passed is None or self.__passed[0] is not priced or self.__passed[1] is not loss:
            self.check(priced, loss)
        charged = self.__charged(priced)
        if charged is None:
            self.reserve(priced, label=label)
        charge = charged or self.__charged(priced)
        if charge is None:
            raise PlanViolation("this plan's charge was opened by another thread: reserve and open it in one")
        reservation = charge[1]
        with settled(None if charged else reservation):
            domain = replace(self.domain(priced.budget.neighbors, loss), start=start, moments=moments)
            engine = within_memory(lambda: self.__admitted(loss, reservation, priced, domain.n))
            loss = self.__offset_loss(loss)
            return Curator(engine, domain, loss, priced=priced, facts=self.facts(priced), reservation=reservation)

    def target_place(self, loss: Loss) -> tuple[float, float]:
        """Return a numeric target's center and scale by its declared range, (0, 1) of classes."""
        if loss.task == "classification":
            return 0.0, 1.0
        return loss.target_place(self.__target_range(loss), intercept=self.scaling.intercept)

    def __target_range(self, loss: Loss) -> tuple[float, float]:
        if self.bounds.target is None:
            raise MissingBounds("the target's range is not declared: write Bounds(..., target=(low, high))")
        if loss.log_link:
            refuse_negative_counts(self.bounds.target)
        if self.__has_offsets and self.bounds.offsets is not None:
            return loss.offset_target_range(self.bounds.target, self.bounds.offsets)
        return self.bounds.target

    def __target_scaling(self, loss: Loss) -> admission.TargetScaling:
        ends = self.bounds.offsets if self.__has_offsets else None
        scaling = admission.TargetScaling(weights=self.bounds.weights, offsets=ends, loss=self.__offset_loss(loss))
        if loss.task == "classification":
            classes = max(2, loss.n_outputs)
            return replace(scaling, signed=loss.n_outputs == 1, n_classes=classes, factors=self.__factors)
        self.__target_range(loss)
        center, scale = self.target_place(loss)
        return replace(scaling, range=self.bounds.target, scale=scale, center=center)

    def __kept(self, neighbors: Neighbors) -> Json:
        """Return where encoded rows will be kept and in how many parts, decided once, where that tells no private n."""
        if not self.__may_tell(neighbors):
            return {}
        if self.__rows.elsewhere is not None:
            return dict(self.__rows.elsewhere.kept)
        if self.__storage is None:
            self.__storage = storage_for(int(self.__rows.shape[0]), self.scaling.width, self.scaling.grid)
        return self.__kept_on_disk() if self.__storage.on_disk else {}

    def __may_tell(self, neighbors: Neighbors) -> bool:
        return self.unit == "record" and neighbors.n_is_public and not self.__is_sparse

    def __kept_on_disk(self) -> Json:
        parts = -(-int(self.__rows.shape[0]) // rows_per_part(self.scaling.width))
        return {"kept": "scratch files", "parts": parts}

    def __possible_facts(self, priced: PricedPlan) -> list[Json]:
        """Return the facts with rows in memory, and on disk: a charge may be asked for again with less memory left."""
        facts, neighbors = self.facts(priced), priced.budget.neighbors
        if self.__rows.elsewhere is not None or not self.__may_tell(neighbors):
            return [facts]
        plain = {key: fact for key, fact in facts.items() if key not in self.__kept(neighbors)}
        return [plain, {**plain, **self.__kept_on_disk()}]

    def facts(self, priced: PricedPlan) -> Json:
        """Return the unit and the declared facts, and of which columns something is or will be estimated."""
        queries = {release.query for release in priced.plan.releases}
        facts = {"unit": self.unit, **self.bounds.to_dict(), "n": self.public_n(priced.budget.neighbors)}
        if self.__factors is not None:
            facts["class_weights"] = list(self.__factors)
        facts |= {**self.declared, **self.__kept(priced.budget.neighbors)}
        if self.__rows.estimates is not None and QUERY in queries:
            facts[ESTIMATED_RANGES] = list(self.__rows.estimates.names)
        if self.__checked is not None:
            facts[CHECKED] = self.__checked
        elif self.__rows.checks is not None and CHECKS in queries:
            facts[CHECKED] = list(self.__rows.checks.names)
        return facts


def _class_weights(factors: admission.Table, classes: Sequence[object] | None) -> tuple[float, ...]:
    """Return a positive weight per declared class."""
    is_list = classes is not None and isinstance(factors, list | tuple | np.ndarray)
    if not is_list or len(factors) != len(classes or ()) or not all(conforms(f, Positive) for f in factors):
        raise Unsupported("class weights are positive numbers, one for each declared class, such as {0: 1, 1: 5}")
    return tuple(float(factor) for factor in factors)


def rehearsal(X: Floats, y: Floats, domain: Domain, loss: Loss, priced: PricedPlan, *, times: int) -> Curator:
    """Return a curator of public rows in training coordinates, each of which stands for ``times`` alike.

    It answers what a fit asks, as for a table of ``times len(X)`` records, so that a plan can be rehearsed.

    Privacy
    -------
    None is promised: rows are drawn from a declared law, and noise comes from a public seed, which a rehearsal insists
    on. A certificate of it would be stamped NOT PRIVATE.
    """
    if current_entropy().is_private:
        raise PlanViolation("a rehearsal draws its noise from a public seed: open private records with PrivateData")
    p = X.shape[1]
    bounds = domain.feature_bounds[:p]
    low, high = (-bounds, bounds) if domain.ranges is None else domain.ranges.T
    square = domain.row_norm**2 - domain.intercept
    longest = None if square >= float(bounds @ bounds) * (1 - 1e-9) else math.sqrt(square)
    scaling = admission.Scaling(low, high, np.zeros(p), np.sign(bounds), domain.intercept, longest, COARSE)
    public = replace(domain, n=times * len(X), sparse=False, grouped=False, remote=False, weighted=False)
    engine = AlikeRows(engine_for(admission.admit(X, y, scaling), threads=1), times)
    return Curator(engine, public, loss, priced=priced, facts={})


_WORD = 2**64


class Sketcher:
    """A fingerprint in the making: rows are shown to it in blocks, no matter who else reads them.

    Of the ``rows_per_record`` rows that a record becomes it takes the first.
    """

    def __init__(self, key: bytes, n: int, rows_per_record: int = 1) -> None:
        self._key, self._every = key, rows_per_record
        self._hashes = RowHashes(row_secrets(key), n // rows_per_record)

    def see(self, first: int, last: int, block: Floats) -> None:
        """Rows ``first`` to ``last`` of the table, all rows of some records."""
        self._hashes.see(first // self._every, last // self._every, np.ascontiguousarray(block[:: self._every]))

    def see_sparse(self, csr: admission.Table) -> None:
        """All rows of a sparse table."""
        self._hashes.see_sparse(csr)

    def result(self) -> Fingerprint:
        """What a ledger compares."""
        return fingerprint_from(self._hashes.sketch(), self._key)


def fingerprint_from(sketch: RowSketch, key: bytes) -> Fingerprint:
    """The fingerprint of rows that were hashed with words from this key, in one place or in several."""
    digest = hashlib.blake2b(key=key, digest_size=32)
    for number in (sketch.rows, *sketch.sums):
        digest.update((number % _WORD).to_bytes(8, "little"))
    return Fingerprint(digest.hexdigest(), sketch.smallest, sketch.rows)


def fingerprint_of(X: admission.Table, key: bytes) -> Fingerprint:
    """The fingerprint of a table under a key. Anyone who has the key can test guesses of records against it.

    Privacy
    -------
    None: it depends on every record. It goes into the owner's ledger, and nothing that leaves depends on it.
    """
    table = admission.two_dimensional(X)
    n, width = table.shape
    sketcher = Sketcher(key, n)
    if admission.is_sparse(table):
        sketcher.see_sparse(admission.canonical(table))
    else:
        for first, last, block in admission.blocks(table, n, width):
            sketcher.see(first, last, block)
    return sketcher.result()
