"""What was released and what it cost: the account as a bar, the plan as a table."""

import math
from collections.abc import Sequence
from html import escape

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import (
    ZCDP,
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PerturbedMinimum,
    PoissonSampled,
    PureDP,
    RepeatedSelection,
    TotalVariation,
)
from discreet.ledger.account import Spent
from discreet.report.html import number, paragraphs, percent, table

QUERIES = {
    "noisy_mean": "where the columns' middles are",
    "noisy_mean_squares": "how wide the columns are",
    "noisy_second_moment": "how the columns go together",
    "noisy_weighted_gradient": "which way to refine the coefficients",
    "noisy_curvature": "how sharply the effects are determined",
    "noisy_score_covariance": "how much the effects vary from sample to sample",
    "noisy_squared_slopes": "how large the residuals are",
    "noisy_shells": "how many rows and residuals are far out",
    "noisy_target_moments": "how the columns go with the target",
    "noisy_share_within": "how many rows lie within a window",
    "noisy_squared_norms": "how large the columns are",
    "noisy_count": "how many rows there are",
    "noisy_counts": "where the values of columns with a private range lie",
    "noisy_checks": "how many cells do not hold what the schema declares",
    "noisy_gradient": "which way to move all coefficients",
    "noisy_gradient_change": "how that changed since the last full look",
    "noisy_coordinate_gradient": "which way to move one coefficient",
    "select_coordinate": "which coefficient to move",
    "select_candidate": "which of several models is best",
    "noisy_minimizer": "the best model, plus noise",
    "perturbed_minimizer": "the best model of a noisy objective",
    "perturb_objective": "the best model of a noisy objective",
    "sample_minimizer": "a model drawn by how good it is",
}
"""What a query asks of the table, in words."""

_ACCOUNTANTS = {
    "gdp": "exact, by Gaussian differential privacy",
    "pld": "by privacy loss distributions",
    "rdp": "by Rényi differential privacy",
    "zcdp": "by zero-concentrated differential privacy",
    "basic": "by adding up",
    "pure": "by adding up",
}


def account_bar(spent: Spent) -> str:
    """What is gone of a data set's cap, and what is left."""
    share = min(max(spent.share, 0.0), 1.0)
    left = f"{percent(1 - share)} left"
    delta = f" at delta = {number(spent.left_delta)}" if spent.left_delta else ""
    fits = "one fit has" if spent.fits == 1 else f"{spent.fits} fits have"
    composed = f"{number(spent.epsilon)} composed" if math.isfinite(spent.epsilon) else "added up, fit by fit"
    said = [
        f"The cap is epsilon = {number(spent.cap_epsilon)}"
        + (f", delta = {number(spent.cap_delta)}" if spent.cap_delta else "")
        + f". So far {fits} been charged: epsilon = {number(spent.summed_epsilon)} if simply added, {composed}.",
        f"What is left allows one more fit of at most epsilon = {number(spent.left)}{delta}.",
    ]
    told = f"{percent(share)} of the cap is spent, {left}"
    return (
        f"<p>Data set <strong><bdi>{escape(spent.dataset)}</bdi></strong>"
        f": {percent(share)} of the cap is spent, {left}."
        f'</p><div class="bar" role="img" aria-label="{told}"><span class="fill0" style="width:{100 * share:.2f}%">'
        f"</span></div>{paragraphs(said)}"
    )


def shares(certificate: Certificate) -> list[float] | None:
    """Each event's part of the budget, where parts add up; None where only the whole has a price.

    With delta = 0 epsilons are added. Else concentrated privacy is: rho = count / (2 noise_multiplier^2) for Gaussian
    noise, epsilon^2/2 for pure releases and epsilon^2/8 for the exponential mechanism.
    """
    weights = [_weight(event, pure=certificate.delta == 0) for event in released(certificate)]
    if len(weights) == 1:
        return [1.0]
    known = [weight for weight in weights if weight is not None]
    total = math.fsum(known)
    return [weight / total for weight in known] if len(known) == len(weights) and total > 0 else None


def released(certificate: Certificate) -> list[Event]:
    """The releases among the events; an assumption is none."""
    return [event for event in certificate.events if not isinstance(event, TotalVariation)]


def _weight(event: Event, *, pure: bool) -> float | None:
    if isinstance(event, Gaussian) and not pure:
        return event.count / (2 * event.noise_multiplier**2)
    if isinstance(event, ZCDP) and not pure:
        return event.rho
    if isinstance(event, (Laplace, PureDP, BoundedRange)):
        size = 8 if isinstance(event, BoundedRange) else 2
        return event.count * (event.epsilon if pure else event.epsilon**2 / size)
    return None


def plan_section(certificate: Certificate, steps: Sequence[str]) -> str:
    """Every release: what it asked, how often, with how much noise, for which part of the budget."""
    events, parts = released(certificate), shares(certificate) if certificate.is_private else None
    named = list(steps) if len(steps) == len(events) else [""] * len(events)
    count = sum(event.count for event in events)
    rows, segments = [], []
    for place, (event, query) in enumerate(zip(events, named, strict=True)):
        fill = f"fill{place % 4}"
        swatch = f'<span class="swatch {fill}" aria-hidden="true"></span>' if parts else ""
        told = QUERIES.get(query, "")
        asked = f"{swatch}<code>{escape(query)}</code>" if query else f"{swatch}{escape(_kind(event))}"
        rows.append(
            f'<tr><th scope="row">{asked}{f"<br><span class=note>{escape(told)}</span>" if told else ""}</th>'
            f'<td class="number" data-label="how often">{event.count:,}</td>'
            f'<td class="words" data-label="noise">{escape(_noise(event))}</td>'
            + (f'<td class="number" data-label="part of the budget">{percent(parts[place])}</td>' if parts else "")
            + "</tr>"
        )
        if parts:
            segments.append(f'<span class="{fill}" style="width:{100 * parts[place]:.3f}%"></span>')
    head = ["release", "how often", "noise", *(["part of the budget"] if parts else [])]
    solver = certificate.solver.get("name", "not named")
    said = (
        f"The solver is {solver}. {'The one question' if count == 1 else f'All {count:,} questions'} to the table, and "
        f"{'its' if count == 1 else 'their'} cost, {'was' if count == 1 else 'were'} fixed before any row was read. "
        "Everything else is computed from the answers."
    )
    if certificate.trace:
        answered = sum(charge.answered for charge in certificate.trace)
        said = (
            f"The solver is {solver}. It chose what to ask as it went, up to a total that was fixed before a row was "
            f"read: {answered} answers in {max(charge.round for charge in certificate.trace)} rounds."
        )
    bar = ""
    if len(segments) > 1:
        bar = f'<div class="bar" role="img" aria-label="Parts of the budget, as in the table">{"".join(segments)}</div>'
    without = [] if parts or not certificate.is_private else ["These releases have a price together only, not apart."]
    return "\n".join(
        [
            paragraphs([said]),
            bar,
            table(head, rows, label="Releases", numbers=(1, 3), kind="wide stacked"),
            paragraphs(without, "note"),
            _accountants(certificate),
        ]
    )


def _accountants(certificate: Certificate) -> str:
    if not (certificate.is_private and certificate.accountants):
        return ""
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="words">{escape(_ACCOUNTANTS.get(name, ""))}</td>'
        f'<td class="number" data-label="epsilon">{value:.6g}</td></tr>'
        for name, value in certificate.accountants.items()
    ]
    at = number(certificate.delta)
    said = f"What all of it costs at delta = {at}, computed in different ways. Each is an upper bound."
    return paragraphs([said]) + table(
        ["accountant", "", "epsilon"], rows, label="Accountants", numbers=(2,), kind="stacked"
    )


def _kind(event: Event) -> str:
    names: list[tuple[type, str]] = [
        (Gaussian, "sums with Gaussian noise"),
        (Laplace, "sums with Laplace noise"),
        (BoundedRange, "choices by the exponential mechanism"),
        (PureDP, "choices with noise"),
        (ZCDP, "adaptive answers"),
        (PerturbedMinimum, "the minimum of a noisy objective"),
        (RepeatedSelection, "the best of a secret number of runs"),
        (NonPrivate, "something without noise"),
    ]
    if isinstance(event, PoissonSampled):
        return f"{_kind(event.event)}, on samples"
    return next((text for cls, text in names if isinstance(event, cls)), "a release")


def _noise(event: Event) -> str:
    """The noise over the sensitivity, or what stands for it."""
    if isinstance(event, PoissonSampled):
        return f"{_noise(event.event)}; each row takes part with probability {number(float(event.probability))}"
    if isinstance(event, (Gaussian, Laplace, PerturbedMinimum)):
        law = event.noise if isinstance(event, PerturbedMinimum) else event.kind
        return f"{law.capitalize()}, {number(event.noise_multiplier, 4)} × sensitivity"
    if isinstance(event, (BoundedRange, PureDP)):
        return f"epsilon = {number(event.epsilon, 4)} each"
    if isinstance(event, ZCDP):
        return f"rho = {number(event.rho, 4)} in all"
    return "none" if isinstance(event, NonPrivate) else "that of its runs"
