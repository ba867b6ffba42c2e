from discreet.accounting.certificate import Certificate as Certificate
from discreet.accounting.plan import AdaptivePlan as AdaptivePlan
from discreet.accounting.plan import Perturbation as Perturbation
from discreet.accounting.plan import Plan as Plan
from discreet.accounting.plan import Release as Release
from discreet.accounting.pricing import calibrate as calibrate
from discreet.accounting.pricing import price as price
