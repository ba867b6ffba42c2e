"""The service on neighboring tables: every answer, page, file name, log line and charge is the same, but for noise."""

import csv
import logging
from pathlib import Path

import pytest

from discreet.serve import api, jobs, service
from discreet.serve.jobs import Outcome
from discreet.serve.store import note
from tests.promises.surface.audit import surface
from tests.promises.surface.cases import case_of, differences
from tests.promises.surface.harness import workshop
from tests.promises.surface.services import service_entries

EXAMPLE = ("discreet serve", "CSV", "sentinel text", "color", 20)


def test_neighbors_look_alike():
    with workshop() as place:
        assert differences(place, case_of(*EXAMPLE)) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_neighbors_look_alike_whatever_the_cell(seed):
    found = surface(service_entries(), n_cases=16, seed=seed)
    assert len(found.outcomes) >= 8
    assert list(map(str, found.differences)) == []


# --- planted leaks ------------------------------------------------------------------------------------


def rows_of(dataset):
    with Path(dataset.table[0]).open(encoding="utf-8", errors="replace") as file:
        return list(csv.reader(file))


def cell(dataset):
    return rows_of(dataset)[21][1]


def a_cell_in_a_reason(monkeypatch):
    monkeypatch.setattr(
        jobs, "_fitted", lambda settings, job, dataset, ledger: (_ for _ in ()).throw(LookupError(cell(dataset)))
    )
    monkeypatch.setattr(jobs, "is_charged", lambda *_: True)
    honest = jobs.carry_out

    def carry_out(settings, job):
        honest(settings, job)
        return Outcome("refused", f"no such category: {cell(settings.datasets[job.dataset])}")

    monkeypatch.setattr("discreet.serve.jobs.carry_out", carry_out)


def a_private_number_of_rows(monkeypatch):
    honest = service.Service.described

    def described(self, person, name):
        return {**honest(self, person, name), "rows": len(rows_of(self.settings.datasets[name]))}

    monkeypatch.setattr(service.Service, "described", described)


def a_cell_in_a_log(monkeypatch):
    honest = jobs.table_of

    def table_of(dataset):
        logging.getLogger("discreet.serve").info("first cells: %s", cell(dataset))
        return honest(dataset)

    monkeypatch.setattr(jobs, "table_of", table_of)


def a_cell_in_a_file_name(monkeypatch):
    honest = jobs.carry_out

    def carry_out(settings, job):
        (settings.results / f"{cell(settings.datasets[job.dataset])}.txt").touch()
        return honest(settings, job)

    monkeypatch.setattr("discreet.serve.jobs.carry_out", carry_out)


def a_cell_in_the_audit_log(monkeypatch):
    honest = jobs.carry_out

    def carry_out(settings, job):
        from discreet.serve.store import Store

        with Store(settings.database).writing() as at:
            note(at, "service", "read", cell(settings.datasets[job.dataset]))
        return honest(settings, job)

    monkeypatch.setattr("discreet.serve.jobs.carry_out", carry_out)


def a_summary_of_the_rows(monkeypatch):
    honest, run = api.job_dict, jobs.carry_out
    known = {}

    def job_dict(job):
        return {**honest(job), "unknown_cells": sum(row[1] not in ("red", "blue", "green") for row in known["rows"])}

    def carry_out(settings, job):
        known["rows"] = rows_of(settings.datasets[job.dataset])
        return run(settings, job)

    known["rows"] = []
    monkeypatch.setattr(api, "job_dict", job_dict)
    monkeypatch.setattr("discreet.serve.jobs.carry_out", carry_out)


PLANTED = [
    (a_cell_in_a_reason, EXAMPLE, "answer"),
    (a_private_number_of_rows, (*EXAMPLE, "add_remove"), "answer"),
    (a_cell_in_a_log, EXAMPLE, "logged"),
    (a_cell_in_a_file_name, EXAMPLE, "files"),
    (a_cell_in_the_audit_log, EXAMPLE, "answer"),
    (a_summary_of_the_rows, EXAMPLE, "answer"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("plant", "example", "kind"), PLANTED)
def test_planted_leaks_are_caught(plant, example, kind, monkeypatch):
    plant(monkeypatch)
    with workshop() as place:
        found = differences(place, case_of(*example))
    assert kind in {one.kind for one in found}, [str(one) for one in found]
