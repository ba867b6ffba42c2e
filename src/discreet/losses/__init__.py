"""Losses, one file each, and the constants that follow from them and the declared bounds."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.losses.base import Loss as Loss
    from discreet.losses.base import register_loss as register_loss
    from discreet.losses.classification import Logistic as Logistic
    from discreet.losses.classification import SmoothedHinge as SmoothedHinge
    from discreet.losses.classification import Softmax as Softmax
    from discreet.losses.log_link import Gamma as Gamma
    from discreet.losses.log_link import NegativeBinomial as NegativeBinomial
    from discreet.losses.log_link import Poisson as Poisson
    from discreet.losses.log_link import Tweedie as Tweedie
    from discreet.losses.regression import Huber as Huber
    from discreet.losses.regression import Quantile as Quantile
    from discreet.losses.regression import Squared as Squared

__getattr__, __dir__, __all__ = lazy_names(__spec__)
