"""Known answers of all that a fit of a plan runs: its sums, and the samplers of its noise."""

from discreet.accounting.plan import Plan
from discreet.curator.known_answers import once_for_classes, require
from discreet.curator.known_answers.cipher import check_cipher
from discreet.curator.known_answers.gradients import check_kernels
from discreet.curator.lattice.entropy import SeededEntropy
from discreet.curator.lattice.noise import discrete_laplace, poisson_sample, rounded_gaussian
from discreet.losses.base import Loss


def check_planned(plan: Plan, loss: Loss, *, pure: bool, sparse: bool) -> None:
    """Check what a fit of this plan runs, and compile nothing else for it."""
    check_kernels(loss, sparse=sparse, sampled=False)
    if plan.is_sampled:
        check_kernels(loss, sparse=sparse, sampled=True)
        check_poisson()
    if pure or any(release.mechanism != "additive" for release in plan.releases):
        check_laplace()
    if not pure:
        check_gaussian()


@once_for_classes
def check_gaussian() -> None:
    """Raise ``StaleKernels`` unless the exact Gaussian sampler gives its known answers on a fixed stream."""
    check_cipher()
    found = rounded_gaussian(4, 20, SeededEntropy(1)).tolist()
    require(found == [696207, -356740, -678959, -285812], "the Gaussian sampler fails its known answers")


@once_for_classes
def check_laplace() -> None:
    """Raise ``StaleKernels`` unless the exact Laplace sampler gives its known answers on a fixed stream."""
    check_cipher()
    found = discrete_laplace(4, 20, SeededEntropy(1)).tolist()
    require(found == [-1676727, -1618737, -730481, -169126], "the Laplace sampler fails its known answers")


@once_for_classes
def check_poisson() -> None:
    """Raise ``StaleKernels`` unless Poisson samples are the known ones on a fixed stream."""
    check_cipher()
    found = poisson_sample(120, 1 << 12, SeededEntropy(1)).tolist()
    require(found == [13, 25, 32, 53, 68, 107], "the sampler of records fails its known answers")
