"""Known answers of all that a fit of a plan runs: its sums, and the samplers of its noise."""

from discreet.accounting.plan import Plan
from discreet.curator.known_answers import once_for_classes, require
from discreet.curator.known_answers.gradients import check_kernels
from discreet.curator.lattice.entropy import SeededEntropy
from discreet.curator.lattice.noise import discrete_laplace, rounded_gaussian
from discreet.losses.base import Loss


def check_planned(plan: Plan, loss: Loss, *, pure: bool, sparse: bool) -> None:
    """Check what a fit of this plan runs, and compile nothing else for it."""
    check_kernels(loss, sparse=sparse, sampled=False)
    if plan.is_sampled:
        check_kernels(loss, sparse=sparse, sampled=True)
    if pure or any(release.mechanism != "additive" for release in plan.releases):
        check_laplace()
    if not pure:
        check_gaussian()


@once_for_classes
def check_gaussian() -> None:
    """Raise ``StaleKernels`` unless the exact Gaussian sampler gives its known answers on a fixed stream."""
    found = rounded_gaussian(4, 20, SeededEntropy(1)).tolist()
    require(found == [696207, -356740, -678959, -285812], "the Gaussian sampler fails its known answers")


@once_for_classes
def check_laplace() -> None:
    """Raise ``StaleKernels`` unless the exact Laplace sampler gives its known answers on a fixed stream."""
    found = discrete_laplace(4, 20, SeededEntropy(1)).tolist()
    require(found == [-1676727, -1618737, -730481, -169126], "the Laplace sampler fails its known answers")
