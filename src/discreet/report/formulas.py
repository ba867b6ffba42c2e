"""The promise as mathematics: MathML, which browsers draw by themselves, with the same in plain text next to it."""

import math
from html import escape

from discreet.accounting.certificate import Certificate


def formula(content: str, text: str, note: str = "") -> str:
    """A displayed formula; ``text`` is what it says, for those who hear it or whose browser knows no MathML."""
    below = f"<p>{escape(note)}</p>" if note else ""
    return f'<div class="formula">{_math(content, text, display="block")}{below}</div>'


def _math(content: str, text: str, display: str = "inline") -> str:
    return (
        f'<math display="{display}" alttext="{escape(text)}" aria-label="{escape(text)}"><semantics>'
        f'<mrow>{content}</mrow><annotation encoding="text/plain">{escape(text)}</annotation></semantics></math>'
    )


def name(symbol: str) -> str:
    """A variable."""
    return f"<mi>{symbol}</mi>"


def sign(symbol: str) -> str:
    """An operator."""
    fixed = ' stretchy="false"' if symbol in "()[]|∣" else ""
    return f"<mo{fixed}>{symbol}</mo>"


def figure_of(value: float, digits: int = 3) -> str:
    """A number, with a power of ten where it needs one."""
    shown = f"{value:.{digits}g}"
    if "e" not in shown:
        return f"<mn>{shown}</mn>"
    mantissa, exponent = shown.split("e")
    power = f"<msup><mn>10</mn><mn>{int(exponent)}</mn></msup>".replace("-", "\N{MINUS SIGN}")
    return power if mantissa == "1" else f"<mn>{mantissa}</mn>{sign('×')}{power}"


_POWER = "<msup><mi>e</mi><mi>ε</mi></msup>"
_THIN = '<mspace width="0.2em"/>'


def _chance(of: str, given: str = "") -> str:
    more = f"{sign('|')}{given}" if given else ""
    return f'<mi mathvariant="normal">Pr</mi><mrow>{sign("[")}{of}{more}{sign("]")}</mrow>'


def definition(certificate: Certificate, relation: str) -> str:
    """(epsilon, delta)-differential privacy, and its numbers here."""
    primed = f'{name("D")}<mo form="postfix" lspace="0" rspace="0">′</mo>'
    first, second = (f"{name('M')}{sign('(')}{table}{sign(')')}{sign('∈')}{name('S')}" for table in (name("D"), primed))
    slack = f"{sign('+')}{name('δ')}" if certificate.delta else ""
    content = f"{_chance(first)}{sign('≤')}{_POWER}{_THIN}{_chance(second)}{slack}"
    text = "Pr[M(D) in S] <= exp(epsilon) Pr[M(D') in S]" + (" + delta" if certificate.delta else "")
    note = f"for all tables D and D′ and every set S of models. M is the fit; {relation}."
    values = [f"{name('ε')}{sign('=')}{figure_of(certificate.epsilon, 4)}"]
    said = [f"epsilon = {certificate.epsilon:.4g}"]
    if certificate.delta:
        values.append(f"{name('δ')}{sign('=')}{figure_of(certificate.delta)}")
        said.append(f"delta = {certificate.delta:.3g}")
    values.append(f"{_POWER}{sign('≈')}{figure_of(_exp(certificate.epsilon), 4)}")
    said.append(f"exp(epsilon) = {_exp(certificate.epsilon):.4g}")
    numbers = "".join(_math(value, words) for value, words in zip(values, said, strict=True))
    return f'{formula(content, text, note)}<div class="formula values">{numbers}</div>'


def guess_formula(certificate: Certificate, value: str) -> str:
    """How often a guess between two values is right."""
    slack = f"{sign('+')}{name('δ')}" if certificate.delta else ""
    fraction = f"<mfrac><mrow>{_POWER}{slack}</mrow><mrow>{_POWER}{sign('+')}<mn>1</mn></mrow></mfrac>"
    right = _chance("<mtext>right guess</mtext>")
    content = f"{right}{sign('≤')}{fraction}{sign('≈')}<mtext>{escape(value)}</mtext>"
    top = "(exp(epsilon) + delta)" if certificate.delta else "exp(epsilon)"
    return formula(content, f"Pr[right guess] <= {top} / (exp(epsilon) + 1) = {value}")


def odds_formula(certificate: Certificate) -> str:
    """What a sign in the model does to somebody's odds."""
    given, against = sign("∣"), sign(":")
    odds = f"{name('A')}{against}{name('B')}"
    after = f"<mtext>odds</mtext>{sign('(')}{odds}{given}{name('S')}{sign(')')}"
    before = f"<mtext>odds</mtext>{sign('(')}{odds}{sign(')')}"
    slack = ""
    if certificate.delta:
        slack = f"{sign('+')}<mfrac>{name('δ')}<mrow>{_chance(name('S'), name('B'))}</mrow></mfrac>"
    content = f"<mfrac><mrow>{after}</mrow><mrow>{before}</mrow></mfrac>{sign('≤')}{_POWER}{slack}"
    more = " + delta / Pr[S | B]" if certificate.delta else ""
    note = "A and B are the two answers, S is the feature of the model that is looked for."
    return formula(content, f"odds(A : B given S) / odds(A : B) <= exp(epsilon){more}", note)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
