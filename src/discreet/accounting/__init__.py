"""What a release costs: plans, events, prices and certificates. Nothing here reads data."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate as Certificate
    from discreet.accounting.objective_perturbation import Perturbation as Perturbation
    from discreet.accounting.plan import AdaptivePlan as AdaptivePlan
    from discreet.accounting.plan import Plan as Plan
    from discreet.accounting.plan import Release as Release
    from discreet.accounting.pricing import PricedPlan as PricedPlan
    from discreet.accounting.pricing import calibrate as calibrate
    from discreet.accounting.pricing import price as price
    from discreet.accounting.pricing import price_plan as price_plan
    from discreet.accounting.textbook import PrivacyLoss as PrivacyLoss
    from discreet.accounting.textbook import advanced_composition as advanced_composition
    from discreet.accounting.textbook import advanced_share as advanced_share
    from discreet.accounting.textbook import basic_composition as basic_composition
    from discreet.accounting.textbook import classical_gaussian as classical_gaussian
    from discreet.accounting.textbook import composed_epsilon as composed_epsilon
    from discreet.accounting.textbook import heterogeneous_composition as heterogeneous_composition
    from discreet.accounting.textbook import lecture_epsilon as lecture_epsilon
    from discreet.accounting.textbook import population_gap as population_gap
    from discreet.accounting.textbook import records_for_uniform_convergence as records_for_uniform_convergence

__getattr__, __dir__, __all__ = lazy_names(__spec__)
