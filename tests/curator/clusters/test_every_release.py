"""Every release of the curator has the same bits wherever the records are: a new one cannot forget a place."""

import math

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Budget, DPRidge, Schema, TableModel
from discreet.accounting import Plan, Release, price_plan
from discreet.curator import PrivateData, Recoding
from discreet.curator.clusters.remote import WHOLE
from discreet.errors import Unsupported
from discreet.losses import Squared
from discreet.penalties import L2
from discreet.scale import cluster, limited
from discreet.schema import Number, Target, Weight
from discreet.testing import seeded
from tests import registry
from tests.curator.clusters.sparked import frame_in_parts, local_session, needs_spark
from tests.registry import WIDTH

N, P = 230, WIDTH - 1
COLUMNS = [f"x{j}" for j in range(P)]
LAYOUTS = ("weights of persons", "weights", "records", "persons")
PARTS = (1, 7)
CLIPS = np.full(WIDTH, 0.1)
RELEASES = {
    **{name: ask for name, ask in registry.QUERIES.items() if name not in WHOLE},
    "noisy_coordinate_steps": lambda c, w: c.noisy_coordinate_steps(
        w, [0, 3, 0], clips=CLIPS, steps=CLIPS, penalty=L2(0.1), n=4.0
    ),
    "select_coordinate": lambda c, w: c.select_coordinate(w, clips=CLIPS, smoothness=CLIPS, n=4.0, count=2),
    "select_candidate": lambda c, w: c.select_candidate(np.stack([w, w + 0.1]), loss_bound=1.0),
}
PLANNED = {
    "noisy_coordinate_gradient": {"count": 1 + 3},
    "noisy_coordinate_steps": {"count": 0},  # three of the above
    "select_coordinate": {"count": 2, "mechanism": "exponential"},
    "select_candidate": {"mechanism": "exponential"},
}
SAMPLED = ("noisy_gradient", "noisy_gradient_change")


def test_every_release_is_here_or_needs_all_records():
    assert set(RELEASES) | (set(WHOLE) - {"perturb_objective"}) == set(registry.QUERIES) | set(registry.NO_SUMS)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (N, P)), columns=COLUMNS)
    frame.loc[::17, "x1"] = np.nan
    frame["pay"] = frame["x0"] + rng.normal(0, 0.3, N)
    frame["who"], frame["w"] = rng.integers(0, N // 3, N), rng.uniform(0.1, 2, N)
    return frame


FRAME = table()
TYPES = ", ".join([*(f"{name} double" for name in COLUMNS), "pay double", "who bigint", "w double"])


def schema(layout):
    person, weight = "who" if "persons" in layout else None, Weight("w", (0, 2)) if "weights" in layout else None
    return Schema(
        {name: Number((-1, 1)) for name in COLUMNS}, Target("pay", range=(-2, 2)), person=person, weight=weight
    )


def priced(names):
    releases = [Release(name, **{"count": 1, **PLANNED.get(name, {})}) for name in names]
    releases += [Release(name, 1, sampling_probability=0.25) for name in names if name in SAMPLED]
    return price_plan(Plan(releases), Budget(50.0, 1e-6, neighbors="add_remove"))


def private_data(data, layout):
    model = TableModel(schema(layout), DPRidge(), checks=False)
    stream = model.stream(data)
    return PrivateData(stream, None, stream.bounds, ledger=False)


def released(data, layout):
    """Ask everything of one curator, twice where samples are drawn, and some of it after recodings."""
    w, answers = np.linspace(-0.3, 0.4, WIDTH), {}
    recoding = Recoding(np.full(P, 0.125), np.linspace(0.5, 2.0, P))
    with seeded(3):
        curator = private_data(data, layout).open(priced(RELEASES), Squared())
        for name, ask in RELEASES.items():
            answers[name] = ask(curator, w)
        first, second = SAMPLED
        curator.recode(recoding)
        answers[f"{first} of a recoded sample"] = RELEASES[first](curator, w)
        with curator.recoded(recoding):
            answers[f"{second} of a recoded sample"] = RELEASES[second](curator, w)
    return {name: flat(answer) for name, answer in answers.items()}


def flat(answer):
    """Return an answer as lists: a number, an array, or several by name or in turn."""
    if hasattr(answer, "__dict__"):
        return flat(tuple(vars(answer).values()))
    return [flat(one) for one in answer] if isinstance(answer, tuple) else np.asarray(answer).tolist()


@pytest.fixture(scope="module")
def spark():
    with local_session() as session:
        yield session


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scratch_files_files_and_parts_on_dask(client, tmp_path, layout):
    expected = released(FRAME, layout)
    with limited("0B", tmp_path):
        assert released(FRAME, layout) == expected
    for parts in PARTS:
        assert released(dd.from_pandas(FRAME, npartitions=parts, sort=False), layout) == expected
    pq.write_table(pa.Table.from_pandas(FRAME, preserve_index=False), tmp_path / "table.parquet", 50)
    with cluster(client):
        assert released(str(tmp_path / "table.parquet"), layout) == expected


@pytest.mark.thorough
@needs_spark
@pytest.mark.parametrize(("layout", "parts"), list(zip(LAYOUTS, (1, 2, 7, 2), strict=True)))
def test_partitions_in_spark(spark, layout, parts):
    assert released(frame_in_parts(spark, FRAME, TYPES, parts), layout) == released(FRAME, layout)


@pytest.mark.parametrize("name", sorted(set(WHOLE) - {"perturb_objective", "perturbed_minimizer"}))
def test_what_needs_all_records_is_refused_before_the_charge(client, name):
    data = private_data(dd.from_pandas(FRAME, npartitions=2, sort=False), "records")
    budget = Budget(math.inf if name == "exact_minimizer" else 1.0, 1e-6, neighbors="add_remove")
    with pytest.raises(Unsupported, match="iterative one"):
        data.check(price_plan(Plan([Release(name, 1)]), budget), Squared())
