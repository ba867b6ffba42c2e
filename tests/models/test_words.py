"""Words of other libraries: each is refused with what to use instead, and scikit-learn reads what it always read."""

import inspect

import pytest

from discreet import DiscreetError
from discreet.models.base import MODELS
from discreet.models.words import ADVICE


@pytest.mark.parametrize("cls", [MODELS[name] for name in MODELS], ids=lambda cls: cls.__name__)
def test_words_of_other_libraries_are_explained(cls):
    parameters = inspect.signature(cls).parameters
    for word in (*ADVICE, "no_such_word"):
        if word in parameters:
            cls(**{word: None})
        else:
            check_refusal(
                cls, word, ADVICE["alpha"] if "alpha" not in parameters and word in ("C", "lam", "reg") else None
            )


def check_refusal(cls, word, advice):
    for call in (lambda: cls(**{word: 1}), lambda: cls().set_params(**{word: 1})):
        with pytest.raises(TypeError, match=f"Invalid parameter {word!r} for {cls.__name__}: ") as raised:
            call()
        assert isinstance(raised.value, DiscreetError)
        assert isinstance(raised.value, ValueError)  # as that of scikit-learn's set_params
        assert (advice or ADVICE.get(word, "it has epsilon")) in str(raised.value)
