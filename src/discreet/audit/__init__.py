"""Audits: try to refute a claim of privacy. ``REFUTED``, or ``NOT REFUTED``; never "proved".

    from discreet import audit

    audit.replay(fit, X, y, bounds=bounds)     # deterministic: does anything depend on a record that must not?
    audit.gradient(epsilon=1.0)                # one answer of the curator, with a canary at the clip bound
    audit.transcript(fit, data, neighbor)      # a whole fit, from all that was released
    audit.model(fit, data, neighbor, epsilon=1.0)   # a black box: anybody's fit function
    audit.one_run(epsilon=4.0, canaries=2000)  # a single release of a wide model

Audits run on synthetic data. What a finding says may depend on the records: name the data (``named="..."``) where you
audit on real ones, and keep the result with them.
"""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.audit.guessing import gradient as gradient
    from discreet.audit.guessing import model as model
    from discreet.audit.guessing import one_run as one_run
    from discreet.audit.guessing import transcript as transcript
    from discreet.audit.neighbors import replay as replay
    from discreet.audit.result import NOT_REFUTED as NOT_REFUTED
    from discreet.audit.result import REFUTED as REFUTED
    from discreet.audit.result import Audit as Audit

__getattr__, __dir__, __all__ = lazy_names(__spec__)
