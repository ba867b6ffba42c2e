"""Released scores on the page: read from what a score wrote, and priced anew."""

import json

import pytest

from discreet import private_score
from discreet.errors import Unsupported
from discreet.models.scores import PrivateScore
from discreet.report.model_report import scores_section
from tests.models.scored import model_of, table
from tests.registry import METRICS


def released(metric, **settings):
    X, y = table(METRICS[metric])
    asked = {"epsilon": 1.0, "delta": 1e-5, "ledger": False, **settings}
    return private_score(model_of(METRICS[metric]), X, y, metric=metric, **asked).to_dict()


@pytest.mark.parametrize("metric", METRICS)
def test_every_score_is_shown(metric):
    found = json.loads(json.dumps(released(metric)))
    score = PrivateScore.from_dict(found)
    page = scores_section([score])
    assert "Released scores" in page
    assert "epsilon = 1" in page
    assert all(part["name"] in page for part in found["parts"])
    assert (score.metric in ("calibration", "auc")) == ("<svg" in page)


def test_a_score_whose_certificate_claims_too_little_is_refused():
    found = released("accuracy")
    found["certificate"]["epsilon"] = 0.01
    with pytest.raises(Unsupported, match="not a score"):
        PrivateScore.from_dict(found)
