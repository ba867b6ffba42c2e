"""scikit-learn estimators with a privacy guarantee. They are thin: declared facts in, a certificate out."""

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
