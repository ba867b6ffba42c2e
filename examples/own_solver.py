"""A solver of one's own, in one file: private exponentiated gradient.

Kivinen & Warmuth 1997; private mirror descent: Talwar, Thakurta & Zhang 2014. On the L1 ball of radius R,

    g_t = [ sum_i clip_C(grad l_i(w_t)) + noise ] / n,    G_t = g_1 + ... + g_t
    w_{t+1} = -R sinh(eta G_t) / sum_j cosh(eta G_t)_j                          released: the mean of the w_t

Mirror descent with the entropy of +w and -w: few large coefficients, at a regret that grows with log p only.
Privacy needs no word here: a solver sees noisy answers only, and may do with them what it likes.

    python examples/own_solver.py
    DISCREET_PLUGINS=examples/own_solver.py discreet fit table.csv --schema schema.toml --solver eg
    DISCREET_PLUGINS=examples/own_solver.py discreet audit replay --solver eg
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Self

import numpy as np

from discreet import DPLogisticRegression, load
from discreet.accounting.plan import Plan, Release
from discreet.solvers.base import CANARY_CLIP, UNWATCHED, AuditCase, Solution, count_release, public_count, register
from discreet.solvers.settings import step_count, typical_clip


@register("eg")
@dataclass(frozen=True)
class ExponentiatedGradient:
    """Exponentiated gradient on the L1 ball of this radius; ``rate`` is eta over the step of the regret bound."""

    n_steps: int = 50
    radius: float = 20.0
    rate: float = 4.0
    clip: float | None = None
    name: ClassVar[str] = "eg"

    def plan(self, domain, loss, penalty):
        """``n_steps`` noisy gradients, and a noisy count where n is private: all that a run will ask for."""
        return Plan((Release("noisy_gradient", self.n_steps, clip=self.clip), *count_release(domain)))

    def solve(self, curator, penalty, progress=UNWATCHED):
        """The algorithm."""
        n, total, mean = public_count(curator), np.zeros(curator.domain.shape), np.zeros(curator.domain.shape)
        eta = self.rate * math.sqrt(2 * math.log(2 * total.size) / self.n_steps) / self.clip
        w = total
        for t in progress(range(self.n_steps)):
            total = total + curator.noisy_gradient(w, clip=self.clip) / n
            far = np.abs(eta * total).max()  # a common factor that cancels, so that nothing overflows
            up, down = np.exp(-eta * total - far), np.exp(eta * total - far)
            w = self.radius * (up - down) / (up + down).sum()
            mean += (w - mean) / (t + 1)
        return Solution(mean)

    def settings(self):
        """For the certificate."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def defaults(cls, domain, loss, penalty, budget) -> Self:
        """What ``solver="eg"`` means, from public facts."""
        return cls(n_steps=min(200, step_count(domain, budget)))

    def filled(self, domain, loss, penalty, budget) -> Self:
        """Choose the clip, where it is left open."""
        return self if self.clip is not None else replace(self, clip=typical_clip(domain, loss, budget))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Settings under which a canary shows all it can: few steps that hardly move."""
        return AuditCase(cls(n_steps=5, radius=1e-4, clip=CANARY_CLIP))


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 30))  # three features matter
    y = (X[:, 0] - 2 * X[:, 1] + X[:, 2] + 0.3 * rng.logistic(size=20_000) > 0).astype(int)

    model = DPLogisticRegression(1.0, bounds=1.0, classes=(0, 1), solver="eg", ledger=False).fit(X, y)
    print(model.certificate_, end="\n\n")
    again = load(model.save("eg.discreet"))  # by name or as an object: what is registered can be saved
    print("accuracy on public rows:", np.mean(again.predict(X) == y))


if __name__ == "__main__":
    main()
