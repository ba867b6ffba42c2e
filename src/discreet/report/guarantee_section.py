"""What a certificate promises a person: in words, as betting odds, and in formulas; and what it does not promise.

The odds are exact, also for delta > 0. Let A and B be two possible values of one record (person), a an event that may
be seen in the model, and P[a | B] >= c. As P[a | A] <= e^epsilon P[a | B] + delta, seeing a multiplies the odds of A
against B by at most e^epsilon + delta/c. A guess between A and B that are equally likely beforehand is right with a
probability of at most (e^epsilon + delta) / (e^epsilon + 1): half of one plus the total variation distance.
"""

import math

from discreet.accounting.certificate import Certificate
from discreet.budget import Neighbors
from discreet.report.formulas import definition, guess_formula, odds_formula
from discreet.report.html import bullets, number, paragraphs, percent

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
    """What is protected, as a word: a row or a person."""
    return "row" if certificate.unit == "record" else "person"


def promise(certificate: Certificate) -> list[str]:
    """The guarantee in plain words."""
    if not certificate.is_private:
        return [f"Nothing: {'; '.join(certificate.reasons)}. Do not release this model."]
    factor = math.exp(min(certificate.epsilon, 700.0))
    one, its = ("row", "it") if certificate.unit == "record" else ("person", "all of that person's rows")
    slack = f", up to a probability of {number(certificate.delta, 2)}" if certificate.delta else ""
    return [
        f"Take any one {one} that the model was trained on. If {its} {_CHANGED[certificate.neighbors]}, "
        f"no outcome would have become more than {factor:.3g} times more or less likely{slack}.",
        "So anyone who sees the model, knows all other rows and has any amount of time learns little about this one. "
        "The promise does not say that the model is accurate, nor that nothing can be learned about people in general.",
        "It rests on the facts that the certificate lists as public. They were declared, not measured.",
    ]


def not_promised(certificate: Certificate) -> list[str]:
    """What readers might take for promised."""
    one = one_of(certificate)
    said = [
        "That nothing is learned about people in general. If the model finds that smokers come back more often, this "
        f"says something about every smoker. It would have said the same had that {one} been another.",
        "That the model is accurate, fair or right. The noise that protects people also moves the coefficients.",
        "That the declared facts are secret. They are in this page as they were declared.",
    ]
    if certificate.unit == "record":
        said.append("Protection of somebody who has several rows as a whole: each row is protected by itself.")
    if certificate.neighbors.n_is_public:
        said.append("That the number of rows is secret: it is taken as public.")
    said += certificate.not_covered
    if certificate.arithmetic != "exact lattice":
        said.append(
            "That the last bits are safe: the proof is of real numbers, the computer's were rounded (idealized)."
        )
    said.append("Protection against somebody who holds the table itself, or who timed the fit.")
    return said


def odds_factor(certificate: Certificate) -> float:
    """By how much a sign in the model multiplies the odds, at most."""
    return math.exp(min(certificate.epsilon, 700.0)) + certificate.delta / LEAST_CHANCE


def posterior(prior: float, factor: float) -> tuple[float, float]:
    """The least and the greatest chance after odds were multiplied by something within [1/factor, factor]."""
    return prior / (prior + (1 - prior) * factor), prior / (prior + (1 - prior) / factor)


def best_guess(certificate: Certificate) -> float:
    """How often a guess between two equally likely values is right, at most."""
    ratio = math.exp(-min(certificate.epsilon, 700.0))
    return min(1.0, (1 + certificate.delta * ratio) / (1 + ratio))


def promise_section(certificate: Certificate) -> str:
    """The section of a page: words, formulas, odds, limits. Without privacy a stop sign, and no promise."""
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
        f"their odds by a factor of at most {number(factor)}, up or down."
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
    told = "; ".join(
        f"{100 * q:g}% becomes {_chance(posterior(q, factor)[0])} to {_chance(posterior(q, factor)[1])}" for q in PRIORS
    )
    return (
        f'{paragraphs([said])}{odds_formula(certificate)}<figure class="odds"><div role="img" '
        f'aria-label="Chances before and after seeing the model: {told}.">{"".join(rows)}</div>'
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
            [f"Five {one_of(certificate)}s together have the same promise with epsilon = {number(epsilon)}{slack}."]
        )
    ]


def _chance(chance: float) -> str:
    """A chance in percent; one that is nearly 0 or 1 is not called so."""
    if 0.001 <= chance <= 0.999:
        return percent(chance)
    return "below 0.1%" if chance < 0.5 else "over 99.9%"
