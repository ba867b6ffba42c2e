"""Words of other libraries: each is refused with what to use instead, and scikit-learn reads what it always read."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import has_fit_parameter

from discreet import DiscreetError, DPLinearRegression, DPLogisticRegression, DPRidge
from discreet.models.registry import MODELS
from discreet.models.words import ADVICE, UnknownParameter
from tests.public_names import public

WORDS = ("class_weight", "C", "random_state", "max_iter", "tol", "n_jobs", "normalize", "l1_ratio")


@pytest.mark.parametrize("cls", [MODELS[name] for name in MODELS], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("word", [*ADVICE, "no_such_word"])
def test_a_word_of_another_library_is_explained(cls, word):
    if word in inspect.signature(cls).parameters:
        cls(**{word: None})
        return
    for call in (lambda: cls(**{word: 1}), lambda: cls().set_params(**{word: 1})):
        with pytest.raises(TypeError, match=f"Invalid parameter {word!r} for {cls.__name__}: ") as raised:
            call()
        assert isinstance(raised.value, DiscreetError)
        assert isinstance(raised.value, ValueError)  # as that of scikit-learn's set_params
        lacks_alpha = "alpha" not in inspect.signature(cls).parameters
        told = ADVICE["alpha"] if lacks_alpha and word in ("C", "lam", "reg") else ADVICE.get(word, "it has epsilon")
        assert told in str(raised.value)


@pytest.mark.parametrize("word", WORDS)
def test_fit_explains_too(word):
    with pytest.raises(TypeError, match=f"Invalid parameter {word!r} for DPRidge.fit: "):
        DPRidge(bounds=1.0, target=(0, 1)).fit(np.zeros((3, 1)), np.zeros(3), **{word: None})


def test_a_slip_of_the_pen():
    with pytest.raises(TypeError, match="did you mean epsilon"):
        DPLogisticRegression(epsilom=1.0)


def test_advice_names_what_exists():
    text = " ".join(ADVICE.values())
    for name in ("GradientDescent", "StochasticGradientDescent", "ElasticNet", "Box", "Bounds", "DPRidge", "DPLasso"):
        assert name in text
        assert name in public()


def test_signatures_are_what_they_were():
    for cls in [MODELS[name] for name in MODELS]:
        kinds = {parameter.kind for parameter in inspect.signature(cls).parameters.values()}
        assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
        assert list(inspect.signature(cls.fit).parameters) == [
            "self",
            "X",
            "y",
            "groups",
            "sample_weight",
            "offset",
            "charge_id",
        ]
        assert has_fit_parameter(cls(), "sample_weight")
        assert cls.fit.__doc__


def test_copies_and_searches_work_as_before():
    model = DPLinearRegression(2.0, bounds=1.0, target=(0, 1))
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).epsilon == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'C' for DPLinearRegression: this model has no penalty"):
        GridSearchCV(model, {"C": [1.0]}).fit(np.zeros((20, 1)), np.zeros(20))


def test_a_subclass_may_hand_its_words_on():
    class Mine(DPLogisticRegression):
        def __init__(self, **words):
            super().__init__(**words)

    assert Mine(epsilon=2.0).epsilon == 2.0
    with pytest.raises(UnknownParameter, match="Invalid parameter 'C' for Mine: use alpha"):
        Mine(C=1.0)


def test_a_model_without_a_penalty_is_not_told_of_alpha():
    with pytest.raises(UnknownParameter, match="DPRidge"):
        DPLinearRegression(C=1.0)
