"""Estimators in a notebook: the claim, parameters and released attributes, and nothing of records."""

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import DPLogisticRegression, DPRandomizedSearch, DPRidge, Schema, TableModel
from discreet.curator import SeededEntropy, use_entropy
from discreet.models import SchemaEncoder, TableSearch, base
from discreet.schema import Category, Number, Target

SCHEMA = Schema({"age": Number((18, 110)), "ward": Category(("a", "b"))}, Target("back", classes=(0, 1)))
TABLE = {"age": [30, 60, 80] * 40, "ward": ["a", "b", "a"] * 40, "back": [0, 1, 1] * 40}
PUBLIC = {"n_features_in_", "feature_names_in_", "classes_"}
RELEASED = {
    "coef_",
    "intercept_",
    "certificate_",
    "coef_noise_",
    "intercept_noise_",
    "effects_",
    "schema_",
    "estimator_",
}


def ridge(**settings):
    return DPRidge(epsilon=2.0, bounds=1.0, target=(0, 1), solver="gd", **settings)


@pytest.mark.parametrize(
    ("model", "data"),
    [(ridge(), (np.eye(9), np.ones(9))), (TableModel(SCHEMA, DPLogisticRegression(epsilon=2.0)), (TABLE,))],
    ids=["estimator", "table"],
)
def test_the_claim_is_shown(model, data):
    assert "nothing was spent" in model._repr_mimebundle_()["text/html"]
    made = model.fit(*data)
    html = made._repr_mimebundle_()["text/html"]
    assert f"epsilon 2, delta {made.certificate_.delta:g}, replace one, per record" in html
    assert html.startswith("<p")
    assert "sk-top-container" in html
    assert {name for name in vars(made) if name.endswith("_")} <= PUBLIC | RELEASED


def test_searches_show_the_claim():
    search = DPRandomizedSearch(ridge(), {"alpha": [0.1]})
    for one in (search, TableSearch(SCHEMA, search)):
        assert "nothing was spent" in one._repr_html_()


def test_a_claim_without_guarantee_says_so():
    with use_entropy(SeededEntropy(0)):
        assert "NOT PRIVATE" in ridge().fit(np.eye(9), np.ones(9))._repr_html_()


def test_plain_texts_have_no_html():
    with sklearn.config_context(display="text"):
        assert not hasattr(ridge(), "_repr_html_")
        assert list(ridge()._repr_mimebundle_()) == ["text/plain"]


def test_nothing_of_a_record_is_shown():
    """No cell is shown, and no number of rows where that is private."""
    X, y = np.full((30, 2), 0.1234567), np.full(30, 0.7654321)
    model = ridge(neighbors="add_remove", delta=1e-6).fit(X, y)
    html = model._repr_html_()
    assert "1234567" not in html
    assert "7654321" not in html
    assert "n" not in model.certificate_.assumed_public


def test_links_lead_to_the_documentation(monkeypatch):
    monkeypatch.setattr(base, "documentation", lambda: "https://docs.example")
    assert ridge()._get_doc_link() == "https://docs.example/reference/api/estimators.html#discreet.DPRidge"
    assert "docs.example/reference/api/tables.html#discreet.TableModel" in TableModel(SCHEMA)._repr_html_()
    monkeypatch.setattr(base, "documentation", lambda: "")
    assert ridge()._get_doc_link() == ""


def test_a_pipeline_can_be_shown():
    made = make_pipeline(FunctionTransformer(), ridge()).fit(np.eye(9), np.ones(9))
    assert "DPRidge" in made._repr_html_()


def test_a_table_model_names_its_columns():
    model = TableModel(SCHEMA)
    assert not hasattr(model, "feature_names_in_")
    assert model.fit(TABLE).feature_names_in_.tolist() == ["age", "ward"]
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_encoder_has_set_output(library):
    pytest.importorskip(library)
    encoder = SchemaEncoder(SCHEMA).set_output(transform=library).fit(TABLE)
    assert list(encoder.transform(TABLE).columns) == ["age", "ward = a", "ward = b", "ward (other)"]


class Stream:
    """A table of a library that nobody knows: an Arrow stream and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "stream"])
def test_every_library_s_table_is_taken_by_estimators_and_tables(library):
    import pandas as pd
    import pyarrow as pa

    polars = pytest.importorskip("polars")
    made = {
        "pandas": pd.DataFrame,
        "polars": polars.DataFrame,
        "pyarrow": pa.table,
        "stream": lambda d: Stream(pa.table(d)),
    }
    make = made[library]
    table = TableModel(Schema(SCHEMA.columns, SCHEMA.target, rows=120)).fit(make(TABLE))
    assert (table.predict(make(TABLE)) == table.predict(TABLE)).all()
    columns = {"b": np.linspace(0, 1, 50), "a": np.linspace(1, 0, 50)}
    model = ridge().fit(make(columns), np.ones(50))
    assert model.feature_names_in_.tolist() == ["b", "a"]
    assert (model.predict(make(columns)) == model.predict(pd.DataFrame(columns))).all()
