"""Hazards and their answers: what is not answered is said so."""

from dataclasses import replace

import pytest

from discreet.report.privacy_sections import hazards, hazards_section
from tests.report.samples import certificate


def states(made):
    return {one.name: one.state for one in hazards(made)}


def test_every_hazard_has_an_answer_and_a_place():
    for one in hazards(certificate()):
        assert one.state in ("answered", "in part", "not answered")
        assert one.answer
        assert one.where
        assert one.name in hazards_section(certificate())


@pytest.mark.parametrize(
    ("changes", "name", "state"),
    [
        ({}, "An epsilon or delta too large to protect", "answered"),
        ({"assumed_public": {"n": 2_000_000}}, "An epsilon or delta too large to protect", "not answered"),
        ({"unit": "person"}, "Several rows of one person", "answered"),
        ({}, "Several rows of one person", "in part"),
        ({}, "A budget that is spent repeatedly", "not answered"),
        ({"arithmetic": "idealized"}, "Rounding that reveals records", "in part"),
        ({}, "Rounding that reveals records", "answered"),
    ],
)
def test_answers_follow_the_certificate(changes, name, state):
    assert states(replace(certificate(), **changes))[name] == state
