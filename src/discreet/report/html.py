"""The few pieces of HTML and SVG that pages are made of. Every text is escaped where it enters."""

import math
from collections.abc import Iterable, Sequence
from html import escape

MINUS = "\N{MINUS SIGN}"


def isolated(text: str) -> str:
    """A name from a schema: escaped, and read in its own direction."""
    return f"<bdi>{escape(text)}</bdi>"


def paragraphs(texts: Iterable[str], kind: str = "") -> str:
    """Plain texts as paragraphs."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{escape(text)}</p>" for text in texts)


def bullets(texts: Iterable[str]) -> str:
    """Plain texts as a list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def table(
    head: Sequence[str], rows: Iterable[str], *, label: str, numbers: Sequence[int] = (), kind: str = "wide"
) -> str:
    """A table that scrolls within itself where it is too wide. ``rows`` are HTML, ``numbers`` columns of numbers."""
    cells = "".join(
        f'<th scope="col"{" class=number" if place in numbers else ""}>{escape(name)}</th>'
        for place, name in enumerate(head)
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0"><table class="{kind}">'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def number(value: float, digits: int = 3) -> str:
    """A number as people write it, with a real minus."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    shown = f"{value:.{digits}g}"
    if "e" in shown:
        mantissa, exponent = shown.split("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        shown = f"10{power}" if mantissa == "1" else f"{mantissa} × 10{power}"
    elif abs(value) >= 1000:
        shown = f"{float(shown):,.0f}"
    return shown.replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """A share of one, as a percentage."""
    return f"{100 * value:.{digits}f}%".replace("-", MINUS)


def short(count: float) -> str:
    """5,000 as 5k, 2,500,000 as 2.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.3g}"


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most ``most`` round numbers within a range."""
    if not (math.isfinite(high - low) and high > low):
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * power for step in (1, 2, 5, 10, 20) if (high - low) / (step * power) <= most - 1)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]
