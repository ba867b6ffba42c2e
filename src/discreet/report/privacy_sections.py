"""Sections about privacy: the guarantee in words and formulas, hazards, budget and plan, checks of the schema."""

import base64
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from typing import NamedTuple

from discreet.accounting.certificate import ESTIMATED_RANGES, MEANING, Certificate, Checked, at_most, checked_in
from discreet.accounting.events import Event
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.ledger.account import Spent
from discreet.report.page import (
    DARK,
    LIGHT,
    Html,
    MissingPlots,
    budget_trace,
    bullets,
    details,
    number,
    paragraphs,
    percent,
    svg,
    table,
    total_rho,
)

PRIORS = (0.01, 0.1, 0.5, 0.9)
LEAST_CHANCE = 1e-3  # of the signs that the odds are stated for, where delta > 0

_CHANGED = {
    Neighbors.REPLACE_ONE: "had been somebody else's, with any values at all",
    Neighbors.ZERO_OUT: "had been blank",
    Neighbors.ADD_REMOVE: "had not been there",
}
_RELATIONS = {
    Neighbors.REPLACE_ONE: "D′ is D with one {one} exchanged for any other",
    Neighbors.ZERO_OUT: "D′ is D with one {one} blanked, or the other way round",
    Neighbors.ADD_REMOVE: "D′ is D with one {one} added or removed",
}
_QUESTIONS = {
    Neighbors.REPLACE_ONE: "which of two possible values one {one} has",
    Neighbors.ZERO_OUT: "whether one {one} is in the table or blank",
    Neighbors.ADD_REMOVE: "whether one {one} is in the table",
}


def one_of(certificate: Certificate) -> str:
    """Return what is protected, as a word: a row or a person."""
    return "row" if certificate.unit == "record" else "person"


def promise(certificate: Certificate) -> list[str]:
    """Return the guarantee in plain words."""
    if not certificate.is_private:
        return [f"Nothing: {'; '.join(certificate.reasons)}. Do not release this model."]
    factor = math.exp(min(certificate.epsilon, 700.0))
    unit, its = ("row", "it") if certificate.unit == "record" else ("person", "all of that person's rows")
    slack = f", up to a probability of {number(at_most(certificate.delta), 3)}" if certificate.delta else ""
    return [
        f"Take any one {unit} that the model was trained on. If {its} {_CHANGED[certificate.neighbors]}, "
        f"no outcome would have become more than {at_most(factor):.3g} times more or less likely{slack}.",
        "So anyone who sees the model, knows all other rows and has any amount of time learns little about this one. "
        "The promise does not say that the model is accurate, nor that nothing can be learned about people in general.",
        "It rests on the facts that the certificate lists as public. They were declared, not measured.",
    ]


def not_promised(certificate: Certificate) -> list[str]:
    """Return what readers might take for promised."""
    unit = one_of(certificate)
    said = [
        "That nothing is learned about people in general. If the model finds that smokers come back more often, this "
        f"says something about every smoker. It would have said the same had that {unit} been another.",
        "That the model is accurate, fair or right. The noise that protects people also moves the coefficients.",
        "That the declared facts are secret. They are in this page as they were declared.",
    ]
    if certificate.unit == "record":
        said.append("Full protection of a person with several rows: each row is protected separately.")
    if certificate.neighbors.n_is_public:
        said.append("That the number of rows is secret: it is taken as public.")
    said += certificate.not_covered
    if certificate.arithmetic != "exact lattice":
        said.append(
            "That the last bits are safe: the proof assumes real numbers, but the computation was rounded (idealized)."
        )
    said.append("Protection against someone who has the table itself, or who measured how long the fit took.")
    return said


def odds_factor(certificate: Certificate) -> float:
    """By how much a sign in the model multiplies the odds, at most."""
    return math.exp(min(certificate.epsilon, 700.0)) + certificate.delta / LEAST_CHANCE


def posterior(prior: float, factor: float) -> tuple[float, float]:
    """Return the least and the greatest chance after odds were multiplied by something within [1/factor, factor]."""
    return prior / (prior + (1 - prior) * factor), prior / (prior + (1 - prior) / factor)


def best_guess(certificate: Certificate) -> float:
    """Return how often a guess between two equally likely values is right, at most."""
    ratio = math.exp(-min(certificate.epsilon, 700.0))
    return min(1.0, (1 + certificate.delta * ratio) / (1 + ratio))


def promise_section(certificate: Certificate) -> str:
    """Return the section of a page: words, formulas, odds, limits. Without privacy a stop sign, and no promise."""
    if not certificate.is_private:
        return _stop(certificate)
    question = _QUESTIONS[certificate.neighbors].format(one=one_of(certificate))
    relation = _RELATIONS[certificate.neighbors].format(one=one_of(certificate))
    weak = [f"This promise is weak: {'; '.join(certificate.weaknesses)}."] if certificate.weaknesses else []
    return "\n".join(
        [
            '<h2 id="promise">What is promised</h2>',
            paragraphs([*promise(certificate)[:1], *weak]),
            paragraphs(
                [
                    f"Somebody has to guess {question}. Both answers are equally likely at first. With the model, and "
                    f"with everything else known about the table, the guess is right at most "
                    f"{_chance(best_guess(certificate))} of the time; a coin would be right 50% of the time."
                ]
            ),
            "<h3>In formulas</h3>",
            definition(certificate, relation),
            guess_formula(certificate, _chance(best_guess(certificate))),
            "<h3>As betting odds</h3>",
            _odds(certificate, question),
            *_together(certificate),
            "<h3>What is not promised</h3>",
            bullets(not_promised(certificate)),
        ]
    )


def _stop(certificate: Certificate) -> str:
    octagon = "30,4 70,4 96,30 96,70 70,96 30,96 4,70 4,30"
    return (
        '<h2 id="promise">What is promised</h2>\n<div class="stop" role="alert">'
        '<svg viewBox="0 0 100 100" role="img" aria-label="Stop sign">'
        f'<polygon points="{octagon}" fill="#a3261b" stroke="#ffffff" stroke-width="4"/>'
        '<text x="50" y="60" text-anchor="middle" style="fill:#ffffff;font-size:27px;font-weight:800">STOP</text></svg>'
        f"<div>{paragraphs(promise(certificate))}"
        "<p>This page shows the model, so do not pass it on either.</p></div></div>"
    )


def _odds(certificate: Certificate, question: str) -> str:
    factor = odds_factor(certificate)
    rare = f" that has at least a {100 * LEAST_CHANCE:g} % chance of appearing either way" if certificate.delta else ""
    said = (
        f"Before seeing the model, somebody holds an opinion on {question}. Any feature of the model{rare} changes "
        f"their odds by a factor of at most {number(at_most(factor))}, up or down."
    )
    rows = [
        '<div class="row head quiet"><span>chance before</span><span class="strip"></span>'
        '<span class="value quiet" style="font-weight:400">chance after</span></div>'
    ]
    for prior in PRIORS:
        low, high = posterior(prior, factor)
        rows.append(
            f'<div class="row"><span>{100 * prior:g}%</span><span class="strip">{_rail(prior, low, high)}</span>'
            f'<span class="value">{_chance(low)} to {_chance(high)}</span></div>'
        )
    description = "; ".join(
        f"{100 * q:g}% becomes {_chance(posterior(q, factor)[0])} to {_chance(posterior(q, factor)[1])}" for q in PRIORS
    )
    return (
        f'{paragraphs([said])}{odds_formula(certificate)}<figure class="odds"><div role="img" '
        f'aria-label="Chances before and after seeing the model: {description}.">{"".join(rows)}</div>'
        "<figcaption>Mark: the chance before. Bar: where it can be after seeing the model.</figcaption></figure>"
    )


def _rail(prior: float, low: float, high: float) -> str:
    at = [f"{2 + 96 * share:.2f}%" for share in (prior, low, high)]
    return (
        '<svg aria-hidden="true"><line class="rail" x1="2%" x2="98%" y1="50%" y2="50%"/>'
        f'<line class="band" x1="{at[1]}" x2="{at[2]}" y1="50%" y2="50%"/>'
        f'<line class="prior" x1="{at[0]}" x2="{at[0]}" y1="15%" y2="85%"/></svg>'
    )


def _together(certificate: Certificate) -> list[str]:
    epsilon, delta = certificate.group(5)
    if not delta < 1:
        return []
    slack = f" and delta = {number(delta)}" if delta else ""
    return [
        paragraphs(
            [f"Five {one_of(certificate)}s together have the same guarantee with epsilon = {number(epsilon)}{slack}."]
        )
    ]


def _chance(chance: float) -> str:
    """Return a chance in percent; one that is nearly 0 or 1 is not called so."""
    if 0.001 <= chance <= 0.999:
        return percent(chance)
    return "below 0.1%" if chance < 0.5 else "over 99.9%"


def formula(content: str, text: str, note: str = "") -> str:
    """Return a displayed formula; ``text`` is what it says, for those who hear it or whose browser knows no MathML."""
    below = f"<p>{escape(note)}</p>" if note else ""
    return f'<div class="formula">{_math(content, text, display="block")}{below}</div>'


def _math(content: str, text: str, display: str = "inline") -> str:
    return (
        f'<math display="{display}" alttext="{escape(text)}" aria-label="{escape(text)}"><semantics>'
        f'<mrow>{content}</mrow><annotation encoding="text/plain">{escape(text)}</annotation></semantics></math>'
    )


def name(symbol: str) -> str:
    """Return a variable."""
    return f"<mi>{symbol}</mi>"


def sign(symbol: str) -> str:
    """Return an operator."""
    fixed = ' stretchy="false"' if symbol in "()[]|∣" else ""
    return f"<mo{fixed}>{symbol}</mo>"


def figure_of(value: float, digits: int = 3) -> str:
    """Return a number, with a power of ten where it needs one."""
    shown = f"{value:.{digits}g}"
    if "e" not in shown:
        return f"<mn>{shown}</mn>"
    mantissa, exponent = shown.split("e")
    power = f"<msup><mn>10</mn><mn>{int(exponent)}</mn></msup>".replace("-", "\N{MINUS SIGN}")
    return power if mantissa == "1" else f"<mn>{mantissa}</mn>{sign('×')}{power}"


_POWER = "<msup><mi>e</mi><mi>ε</mi></msup>"
_THIN = '<mspace width="0.2em"/>'


def _probability(of: str, given: str = "") -> str:
    more = f"{sign('|')}{given}" if given else ""
    return f'<mi mathvariant="normal">Pr</mi><mrow>{sign("[")}{of}{more}{sign("]")}</mrow>'


def definition(certificate: Certificate, relation: str) -> str:
    """(epsilon, delta)-differential privacy, and its numbers here."""
    primed = f'{name("D")}<mo form="postfix" lspace="0" rspace="0">′</mo>'
    first, second = (f"{name('M')}{sign('(')}{table}{sign(')')}{sign('∈')}{name('S')}" for table in (name("D"), primed))
    slack = f"{sign('+')}{name('δ')}" if certificate.delta else ""
    content = f"{_probability(first)}{sign('≤')}{_POWER}{_THIN}{_probability(second)}{slack}"
    text = "Pr[M(D) in S] <= exp(epsilon) Pr[M(D') in S]" + (" + delta" if certificate.delta else "")
    note = f"for all tables D and D′ and every set S of models. M is the fit; {relation}."
    values = [f"{name('ε')}{sign('=')}{figure_of(certificate.epsilon, 4)}"]
    said = [f"epsilon = {certificate.epsilon:.4g}"]
    if certificate.delta:
        values.append(f"{name('δ')}{sign('=')}{figure_of(certificate.delta)}")
        said.append(f"delta = {certificate.delta:.3g}")
    values.append(f"{_POWER}{sign('≈')}{figure_of(_exp(certificate.epsilon), 4)}")
    said.append(f"exp(epsilon) = {_exp(certificate.epsilon):.4g}")
    shown = "".join(_math(value, words) for value, words in zip(values, said, strict=True))
    return f'{formula(content, text, note)}<div class="formula values">{shown}</div>'


def guess_formula(certificate: Certificate, value: str) -> str:
    """Return how often a guess between two values is right."""
    slack = f"{sign('+')}{name('δ')}" if certificate.delta else ""
    fraction = f"<mfrac><mrow>{_POWER}{slack}</mrow><mrow>{_POWER}{sign('+')}<mn>1</mn></mrow></mfrac>"
    right = _probability("<mtext>right guess</mtext>")
    content = f"{right}{sign('≤')}{fraction}{sign('≈')}<mtext>{escape(value)}</mtext>"
    top = "(exp(epsilon) + delta)" if certificate.delta else "exp(epsilon)"
    return formula(content, f"Pr[right guess] <= {top} / (exp(epsilon) + 1) = {value}")


def odds_formula(certificate: Certificate) -> str:
    """Return what a sign in the model does to somebody's odds."""
    given, against = sign("∣"), sign(":")
    odds = f"{name('A')}{against}{name('B')}"
    after = f"<mtext>odds</mtext>{sign('(')}{odds}{given}{name('S')}{sign(')')}"
    before = f"<mtext>odds</mtext>{sign('(')}{odds}{sign(')')}"
    slack = ""
    if certificate.delta:
        slack = f"{sign('+')}<mfrac>{name('δ')}<mrow>{_probability(name('S'), name('B'))}</mrow></mfrac>"
    content = f"<mfrac><mrow>{after}</mrow><mrow>{before}</mrow></mfrac>{sign('≤')}{_POWER}{slack}"
    more = " + delta / Pr[S | B]" if certificate.delta else ""
    note = "A and B are the two answers, S is the feature of the model that is looked for."
    return formula(content, f"odds(A : B given S) / odds(A : B) <= exp(epsilon){more}", note)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


_ABOUT_HAZARDS = (
    "Common hazards of privacy claims, after NIST SP 800-226, and how this model answers them. Those that are not "
    "answered here are the responsibility of the data's owner."
)
_LOOKS = {"answered": "good", "in part": "weak", "not answered": "bad"}


class Hazard(NamedTuple):
    """What can go wrong, whether and how it is answered, and where to check that."""

    name: str
    state: str
    answer: str
    where: str


def hazards(certificate: Certificate) -> Iterator[Hazard]:
    """Yield the hazards, with the answers that this certificate supports."""

    def answered(holds: bool, otherwise: str = "not answered") -> str:
        return "answered" if holds else otherwise

    unit, weak, is_charged = one_of(certificate), certificate.weaknesses, certificate.ledger is not None
    claim = f"epsilon is per {unit}, under the relation {certificate.neighbors}"
    yield Hazard("An epsilon without a unit of privacy", "answered", claim, "certificate: unit, neighbors")
    size = "; ".join(weak) or f"epsilon = {number(certificate.epsilon)}, delta = {number(certificate.delta)}"
    yield Hazard("An epsilon or delta too large to protect", answered(not weak), size, "certificate: epsilon, delta")
    charged = "charged to a ledger with a cap before a row was read"
    charge = charged if is_charged else "this fit was not charged to a ledger"
    yield Hazard("A budget that is spent repeatedly", answered(is_charged), charge, "discreet budget show")
    yield Hazard(
        "Settings that were tuned on the data",
        "in part",
        "unset parameters follow from declared facts; trials outside this fit are not counted",
        "certificate: solver; section: What is not promised",
    )
    alone = "each row is protected separately; for a person with several rows the guarantee is weaker"
    rows = "all rows of a person count as one" if unit == "person" else alone
    yield Hazard("Several rows of one person", answered(unit == "person", "in part"), rows, "schema: person")
    yield Hazard(
        "Contributions without a limit",
        "answered",
        "every record's contribution is clipped before it is added, whatever the record holds",
        "certificate: events; discreet audit replay",
    )
    is_estimated = ESTIMATED_RANGES in certificate.assumed_public
    ranges = "declared by the owner" + (", or estimated with noise from this budget" if is_estimated else "")
    yield Hazard("Ranges or categories read from the data", "answered", ranges, "section: Taken as public")
    is_exact, is_private = certificate.arithmetic == "exact lattice", certificate.is_private
    rounded = "the proof assumes real numbers, but the computation was rounded"
    sums = "sums and noise are exact integers" if is_exact else rounded
    yield Hazard("Rounding that reveals records", answered(is_exact, "in part"), sums, "certificate: arithmetic")
    keys = "keys from the operating system, new for each answer" if is_private else "; ".join(certificate.reasons)
    yield Hazard("Random numbers that can be guessed", answered(is_private), keys, "certificate: entropy")
    timing = "both may depend on the records: do not publish them"
    yield Hazard("Time and memory of the fit", "not answered", timing, "threat model")
    groups = "noise affects small groups most; scores by group show how much"
    yield Hazard("Larger errors for small groups", "in part", groups, "discreet score --by COLUMN")
    access = "who may read it, how long it is kept, and how it was collected"
    yield Hazard("The table itself", "not answered", access, "your organization")


def hazards_section(certificate: Certificate) -> str:
    """Return the section, as a table."""
    rows = [
        (hazard.name, Html(f'<span class="badge {_LOOKS[hazard.state]}">{hazard.state}</span>'), *hazard[2:])
        for hazard in hazards(certificate)
    ]
    head = ["hazard", "", "how it is answered", "where to check"]
    shown = table(head, rows, label="Hazards", words=(2, 3), kind="wide stacked")
    return '<h2 id="hazards">Hazards and answers</h2>\n' + paragraphs([_ABOUT_HAZARDS]) + shown


QUERIES = {
    "noisy_mean": "mean of each column",
    "noisy_mean_squares": "spread of each column",
    "noisy_second_moment": "covariance of the columns",
    "noisy_weighted_gradient": "gradient, for refining the coefficients",
    "noisy_curvature": "curvature (Hessian) at the estimate",
    "noisy_score_covariance": "covariance of the scores, for standard errors",
    "noisy_squared_slopes": "size of the residuals",
    "noisy_magnitudes": "how far from its center each column is, by powers of two",
    "noisy_shells": "how many rows and residuals are extreme, and in which columns",
    "noisy_target_moments": "covariance of columns and target",
    "noisy_share_within": "share of rows within a window",
    "noisy_squared_norms": "norm of each column",
    "noisy_weight": "the sum of the rows' weights",
    "noisy_count": "number of rows",
    "noisy_counts": "histogram for columns with a private range",
    "noisy_checks": "number of cells that do not match the schema",
    "noisy_gradient": "gradient of all coefficients",
    "noisy_gradient_change": "change of the gradient since the last full one",
    "noisy_coordinate_gradient": "gradient of one coefficient",
    "select_coordinate": "choice of the coefficient to update",
    "select_candidate": "choice of the best of several models",
    "noisy_minimizer": "minimizer of the objective, plus noise",
    "exact_minimizer": "minimizer of the objective, without noise",
    "perturbed_minimizer": "minimizer of a noisy objective",
    "perturb_objective": "minimizer of a noisy objective",
    "sample_minimizer": "model drawn by the exponential mechanism",
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
    """Show what is gone of a data set's cap, and what is left."""
    share = min(max(spent.share, 0.0), 1.0)
    left = f"{percent(1 - share)} left"
    delta = f" at delta = {number(spent.left_delta)}" if spent.left_delta else ""
    fits = "one fit has" if spent.fits == 1 else f"{spent.fits} fits have"
    composed = f"{number(spent.epsilon)} composed" if math.isfinite(spent.epsilon) else "added up, fit by fit"
    said = [
        f"The cap is epsilon = {number(spent.cap_epsilon)}"
        + (f", delta = {number(spent.cap_delta)}" if spent.cap_delta else "")
        + f". So far {fits} been charged: epsilon = {number(spent.summed_epsilon)} if simply added, {composed}.",
        f"The remaining budget allows one more fit of at most epsilon = {number(spent.left)}{delta}.",
    ]
    label = f"{percent(share)} of the cap is spent, {left}"
    return (
        f"<p>Data set <strong><bdi>{escape(spent.dataset)}</bdi></strong>"
        f": {percent(share)} of the cap is spent, {left}."
        f'</p><div class="bar" role="img" aria-label="{label}"><span class="fill0" style="width:{100 * share:.2f}%">'
        f"</span></div>{paragraphs(said)}"
    )


def shares(certificate: Certificate) -> list[float] | None:
    """Return each event's part of the budget, where parts add up; None where only the whole has a price.

    With delta = 0 epsilons are added; else the rho of concentrated privacy, such as count / (2 noise_multiplier^2) for
    Gaussian noise and epsilon^2/8 for the exponential mechanism.
    """
    weights = [_weight(event, pure=certificate.delta == 0) for event in released(certificate)]
    if len(weights) == 1:
        return [1.0]
    positive = [weight for weight in weights if weight is not None]
    total = math.fsum(positive)
    return [weight / total for weight in positive] if len(positive) == len(weights) and total > 0 else None


def released(certificate: Certificate) -> list[Event]:
    """Return the releases among the events; an assumption is none."""
    return [event for event in certificate.events if event.is_release]


def _weight(event: Event, *, pure: bool) -> float | None:
    with suppress(Unsupported):
        return event.count * event.pure_epsilon if pure else event.zcdp or None
    return None


def plan_section(certificate: Certificate, steps: Sequence[str]) -> str:
    """Show every release: what it asked, how often, with how much noise, for which part of the budget."""
    events, parts = released(certificate), shares(certificate) if certificate.is_private else None
    named = list(steps) if len(steps) == len(events) else [""] * len(events)
    count = sum(event.count for event in events)
    rows, segments = [], []
    for place, (event, query) in enumerate(zip(events, named, strict=True)):
        fill = f"fill{place % 4}"
        swatch = f'<span class="swatch {fill}" aria-hidden="true"></span>' if parts else ""
        description = QUERIES.get(query, "")
        kind = event.inner.title + (", on samples" if event.inner is not event else "")
        title = f"{swatch}<code>{escape(query)}</code>" if query else f"{swatch}{escape(kind)}"
        note = f"<br><span class=note>{escape(description)}</span>" if description else ""
        noise = event.noise_text(lambda value: number(value, 4))
        rows.append((Html(title + note), f"{event.count:,}", noise, *([percent(parts[place])] if parts else [])))
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
            f"The solver is {solver}. It chose its queries adaptively, up to a total that was fixed before any row was "
            f"read: {answered} answers in {max(charge.round for charge in certificate.trace)} rounds."
        )
    bar = ""
    if len(segments) > 1:
        bar = f'<div class="bar" role="img" aria-label="Parts of the budget, as in the table">{"".join(segments)}</div>'
    without = (
        []
        if parts or not certificate.is_private
        else ["These releases are priced together; their shares cannot be separated."]
    )
    return "\n".join(
        [
            paragraphs([said]),
            bar,
            table(head, rows, label="Releases", numeric=(1, 3), words=(2,), kind="wide stacked"),
            paragraphs(without, "note"),
            _accountants(certificate),
        ]
    )


def _accountants(certificate: Certificate) -> str:
    if not (certificate.is_private and certificate.accountants):
        return ""
    prices = certificate.accountants.items()
    rows = [(name, _ACCOUNTANTS.get(name, ""), f"{value:.6g}") for name, value in prices]
    said = f"Total cost at delta = {number(certificate.delta)}, by different accountants. Each is an upper bound."
    head = ["accountant", "", "epsilon"]
    return paragraphs([said]) + table(head, rows, label="Accountants", numeric=(2,), words=(1,), kind="stacked")


_ABOUT_CHECKS = (
    "A schema that does not match the table gives a poor model but no error, because an error would reveal records. "
    "Part of the budget was spent on noisy counts of cells that do not match the declared ranges and labels."
)


def checks_section(certificate: Certificate) -> str:
    """Return what the counts tell, and all of them as a table; nothing where there are none."""
    checked = checked_in(certificate.assumed_public, certificate.unit)
    if checked is None:
        return ""
    return "\n".join(
        [
            '<h2 id="checks">Does the table fit the schema?</h2>',
            paragraphs([_ABOUT_CHECKS]),
            bullets(checked.lines()),
            details("All counts, as a table", _counts(checked)),
        ]
    )


def _counts(checked: Checked) -> str:
    cells = [("", "records that count as null", checked.null)]
    cells += [
        (name, f"cells that {MEANING.get(what, what)}", count)
        for name, counts in checked.columns.items()
        for what, count in counts.items()
    ]
    rows = [(name, what, number(count, 6)) for name, what, count in cells]
    return table(["column", "what", "noisy count"], rows, label="Checks", numeric=(2,), words=(1,), kind="wide stacked")


def trace_section(certificate: Certificate) -> str:
    """Show the budget trace of an adaptive run; the certificate below says the same in numbers."""
    total = total_rho(certificate)
    if not (certificate.trace and total):
        return ""
    try:
        pictures = (svg(budget_trace(certificate, theme=theme)) for theme in (LIGHT, DARK))
        light, dark = (f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}" for drawn in pictures)
    except MissingPlots:
        return ""
    answers, refused = (sum(c.answered is kind for c in certificate.trace) for kind in (True, False))
    description = f"rho spent by round and query, up to a total of {total:.3g}: {answers} answered, {refused} refused."
    text = (
        "The run chose its queries adaptively. A privacy filter stopped it before the total was exceeded. "
        "This figure is computed from released answers and reveals nothing more about the data."
    )
    return (
        f'<h2>Where the budget went</h2>\n<p>{text}</p>\n<figure><picture><source media="screen and '
        f'(prefers-color-scheme: dark)" srcset="{dark}"><img src="{light}" alt="{description}"></picture></figure>'
    )
