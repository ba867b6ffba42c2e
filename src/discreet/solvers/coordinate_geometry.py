"""What coordinate methods need of each coordinate: smoothness M_j, clip C_j, step; declared or estimated."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import coordinate_smoothness
from discreet.parameters import OneOf, Positive, Share, check_fields
from discreet.solvers.base import planned
from discreet.solvers.gradient_loop import clip_for
from discreet.solvers.registry import register_part
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

CLIP_RULES = ("smoothness", "uniform")


@register_part("Geometry")
@dataclass(frozen=True)
class Geometry:
    """How coordinates are clipped and scaled.

    Parameters
    ----------
    clip : float or None, default=None
        The total clip C, with sum C_j^2 = C^2. None: by ``relative_clip``.
    relative_clip : float or None, default=None
        C in units of sqrt(sum M / sup f''), the root mean square row norm where M is estimated. None: the bound on a
        record's whole gradient.
    clip_rule : {"smoothness", "uniform"}, default="smoothness"
        C_j = C sqrt(M_j / sum M), or C / sqrt(p).
    smoothness : {"declared", "private", "paper"}, default="declared"
        M_j = sup f'' r_j^2 from the declared bounds or what a stage released of the rows' squares; an estimate of
        (1/n) sum_i f'' x_ij^2; or the papers' estimate, with Laplace noise on each square, p times as large.
    share : float, default=0.1
        Share of mu^2 for such an estimate.
    row_clip : float or None, default=None
        Rows are clipped at this for it. None: at their declared or typical length.
    coordinate_clips, coordinate_smoothness : sequence of float or None, default=None
        C_j and M_j, where they are publicly known: one number per column in training coordinates, the intercept's last.
        They take the place of what the other settings make.

    Examples
    --------
    >>> from discreet.solvers import CoordinateDescent, Geometry
    >>> CoordinateDescent(geometry=Geometry(clip=1.0, smoothness="private")).geometry.share
    0.1
    """

    clip: Positive | None = None
    relative_clip: Positive | None = None
    clip_rule: Annotated[str, OneOf(*CLIP_RULES)] = "smoothness"
    smoothness: Annotated[str, OneOf("declared", "private", "paper")] = "declared"
    share: Share = 0.1
    row_clip: Positive | None = None
    coordinate_clips: tuple[Positive, ...] | None = None
    coordinate_smoothness: tuple[Positive, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def releases(self, domain: Domain, others: float) -> tuple[Release, ...]:
        """List the estimate of squared norms; ``others`` is what the rest of the plan spends, in units of 1/z^2."""
        for given in (self.coordinate_clips, self.coordinate_smoothness):
            if given is not None and len(given) != domain.n_features:
                raise Unsupported(
                    f"give one clip and one smoothness for each of {domain.n_features} columns, the intercept's last"
                )
        if self._is_known:
            return ()
        relative = math.sqrt((1 - self.share) / (self.share * others))
        clip = self._row_clip(domain)
        mechanism = "laplace" if self.smoothness == "paper" else "additive"
        return (Release("noisy_squared_norms", 1, relative_noise=relative, clip=clip, mechanism=mechanism),)

    def total_clip(self, domain: Domain, loss: Loss, smoothness: Floats) -> float:
        """Return C."""
        if self.clip is not None:
            return self.clip
        if self.relative_clip is not None:
            return self.relative_clip * math.sqrt(float(smoothness.sum()) / loss.smoothness)
        return clip_for(domain, loss, None)

    def _row_clip(self, domain: Domain) -> float:
        """Return the length that rows are clipped at where the smoothness is estimated: a typical one in a stage."""
        typical = None if domain.typical is None else domain.typical.norm
        return self.row_clip or typical or domain.row_norm

    @property
    def _is_known(self) -> bool:
        """Whether M_j are known before a run."""
        return self.smoothness == "declared" or self.coordinate_smoothness is not None

    def known_smoothness(self, domain: Domain, loss: Loss) -> Floats:
        """Return M_j as given, as declared, or as a stage released them."""
        if not self._is_known:
            raise Unsupported("no bound covers estimated smoothness: use Geometry(smoothness='declared')")
        if self.coordinate_smoothness is not None:
            return np.array(self.coordinate_smoothness)
        typical = domain.typical
        known = coordinate_smoothness(loss, domain) if typical is None else loss.smoothness * typical.squares
        return np.maximum(known, 1e-12)

    def measure(self, curator: "Curator", n: float) -> Floats:
        """Return M_j, declared or estimated; estimates are floored at twice their noise, so that steps stay bounded."""
        domain, loss = curator.domain, curator.loss
        if self._is_known:
            return self.known_smoothness(domain, loss)
        declared = coordinate_smoothness(loss, domain)
        release, clip = planned(curator, "noisy_squared_norms"), self._row_clip(domain)
        sums = curator.noisy_squared_norms(clip=clip)
        deviation = curator.noise_multiplier * release.relative_noise * self._noise_size(curator, clip)
        floor = np.maximum(2.0 * deviation, 1.0) / n
        estimated = loss.smoothness * np.maximum(sums / n, floor)
        return np.asarray(np.clip(estimated, 1e-12, np.maximum(declared, 1e-12)))

    def _noise_size(self, curator: "Curator", clip: float) -> Floats:
        """Standard deviation of the noise on a sum of squares, at noise multiplier 1."""
        p, replaced = curator.domain.n_features, curator.budget.neighbors.sum_factor == 2
        if self.smoothness == "paper":
            return np.asarray(math.sqrt(2.0) * p * np.square(curator.domain.feature_bounds))
        laplace = curator.budget.is_pure
        factor = (2.0 if laplace else math.sqrt(2.0)) if replaced else 1.0
        return np.full(p, factor * clip**2 * (math.sqrt(2.0) if laplace else 1.0))

    def clips(self, domain: Domain, loss: Loss, smoothness: Floats) -> Floats:
        """Return C_j for each coordinate."""
        if self.coordinate_clips is not None:
            return np.array(self.coordinate_clips)
        total = self.total_clip(domain, loss, smoothness)
        if self.clip_rule == "uniform":
            return np.full(smoothness.size, total / math.sqrt(smoothness.size))
        return np.asarray(total * np.sqrt(smoothness / smoothness.sum()))

    def filled(self, defaults: "HasGeometry") -> "Geometry":
        """Take the clips of a default solver, where none is given."""
        if self.clip is not None or self.relative_clip is not None or self.coordinate_clips is not None:
            return self
        return replace(self, clip=defaults.geometry.clip, relative_clip=defaults.geometry.relative_clip)


class HasGeometry(Protocol):
    """A solver with a geometry."""

    @property
    def geometry(self) -> Geometry:
        """How coordinates are clipped and scaled."""
