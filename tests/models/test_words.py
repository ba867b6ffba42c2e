"""Words of other libraries: each is refused with what to use instead, and scikit-learn reads what it always read."""

import inspect

import pytest

from discreet import DiscreetError, DPLogisticRegression
from discreet.models.base import MODELS
from discreet.models.words import ADVICE, UnknownParameter


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


def test_a_subclass_may_hand_its_words_on():
    class Mine(DPLogisticRegression):
        def __init__(self, **words):
            super().__init__(**words)

    assert Mine(epsilon=2.0).epsilon == 2.0
    with pytest.raises(UnknownParameter, match="Invalid parameter 'C' for Mine: use alpha"):
        Mine(C=1.0)
