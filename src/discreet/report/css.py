"""The look of a page: one style sheet, whose colors change with light, dark and paper."""

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2530",
    "quiet": "#5b6775",
    "line": "#dfe4ea",
    "box": "#f5f7f9",
    "accent": "#1f5fbf",
    "soft": "#d9e6f8",
    "warm": "#a04a17",
    "good": "#17693a",
    "bad": "#a3261b",
    "tint": "#fdecea",
}
DARK = {
    "paper": "#14181d",
    "ink": "#e8ecf1",
    "quiet": "#9aa6b4",
    "line": "#2d353f",
    "box": "#1b2128",
    "accent": "#7db0ff",
    "soft": "#23395c",
    "warm": "#f0a36b",
    "good": "#6fd39a",
    "bad": "#ff9188",
    "tint": "#3a1d1b",
}
"""The colors by name, on screens that ask for dark pages. Text is one of ink, quiet, accent, warm, good and bad, on
paper, box, or tint: each pair has a contrast of at least 4.5 to 1."""


def _variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


_RULES = """
@media screen and (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box; }
body { background: var(--paper); color: var(--ink); font: 17px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans",
       sans-serif; margin: 0; overflow-wrap: break-word; }
main { max-width: 54rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; letter-spacing: -0.01em; margin: 0.5rem 0 1.2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3.2rem 0 0.6rem; padding-top: 1.1rem;
     border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.8rem 0 0.4rem; }
p { margin: 0.6rem 0; max-width: 44rem; } li { margin: 0.35rem 0; max-width: 43rem; } ul { padding-left: 1.2rem; }
.quiet, figcaption, .note { color: var(--quiet); } figcaption, .note { font-size: 0.88rem; line-height: 1.45; }
code { font: 0.88em ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
a { color: var(--accent); } :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

.stamp { display: inline-block; margin: 0; padding: 0.1rem 0.7rem; border: 2px solid; border-radius: 0.4rem;
         font-weight: 700; letter-spacing: 0.06em; font-size: 0.85rem; }
.good { color: var(--good); } .weak { color: var(--warm); } .bad { color: var(--bad); }
.stop { display: flex; gap: 1.2rem; align-items: center; background: var(--tint); border: 2px solid var(--bad);
        border-radius: 0.6rem; padding: 1rem 1.2rem; margin: 1.2rem 0; }
.stop svg { flex: none; width: 4.5rem; height: 4.5rem; } .stop p { margin: 0.2rem 0; }

.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); gap: 0.7rem; margin: 1.4rem 0; }
.cards div { background: var(--box); border: 1px solid var(--line); border-radius: 0.6rem; padding: 0.7rem 0.9rem; }
.cards dt { color: var(--quiet); font-size: 0.82rem; }
.cards dd { margin: 0; font-size: 1.3rem; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
.cards small { display: block; color: var(--quiet); font-size: 0.78rem; font-weight: 400; line-height: 1.35; }
.cards { margin-bottom: 0; }

.scroll { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; font-size: 0.92rem; line-height: 1.4; }
.wide { width: 100%; }
th { text-align: left; font-weight: 400; } thead th { color: var(--quiet); font-size: 0.82rem; vertical-align: bottom; }
th, td { border-bottom: 1px solid var(--line); padding: 0.42rem 1.4rem 0.42rem 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.number { font-weight: 600; }
tbody th { overflow-wrap: anywhere; min-width: 8rem; } td.words { min-width: 10rem; overflow-wrap: anywhere; }
th .note { font-weight: 400; }
.badge { display: inline-block; border: 1px solid; border-radius: 1rem; padding: 0 0.55rem; font-size: 0.78rem;
         white-space: nowrap; color: var(--quiet); }
.badge.bought { color: var(--warm); font-weight: 600; }

figure { margin: 1.4rem 0; } img { width: 100%; height: auto; } figcaption { margin-top: 0.5rem; max-width: 44rem; }
.formula { overflow-x: auto; background: var(--box); border: 1px solid var(--line); border-radius: 0.6rem;
           padding: 0.9rem 1rem; margin: 0.8rem 0; text-align: center; }
math { font-size: 1.12em; font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", "DejaVu Serif", math; }
.values { display: flex; flex-wrap: wrap; justify-content: center; align-items: baseline; gap: 0.2rem 1.6rem; }
.formula p { margin: 0.4rem auto 0; font-size: 0.88rem; color: var(--quiet); }

.strip { position: relative; min-height: 1.75rem; }
.strip svg { position: absolute; inset: 0; width: 100%; height: 100%;
         overflow: visible; }
svg text { fill: var(--quiet); font-size: 12px; font-family: inherit; font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .zero { stroke: var(--quiet); stroke-width: 1; }
.forest { font-size: 0.9rem; line-height: 1.3; }
.forest .row { display: grid; grid-template-columns: minmax(8rem, 16rem) 1fr 11.5rem; column-gap: 0.9rem;
               break-inside: avoid; }
.forest .row > * { min-width: 0; } .forest .label { overflow-wrap: anywhere; align-self: center; padding: 0.16rem 0; }
.forest .value { text-align: right; align-self: center; font-variant-numeric: tabular-nums; font-weight: 600;
                 white-space: nowrap; }
.forest .heading .label { font-weight: 650; padding-top: 0.5rem; }
.forest small { color: var(--quiet); font-size: 0.82em; }
.forest .deep1 .label { padding-left: 0.9rem; } .forest .deep2 .label { padding-left: 1.8rem; }
.forest .axis .strip { min-height: 1.4rem; }
.whisker { stroke: var(--accent); stroke-width: 2; } .dot { fill: var(--accent); stroke: var(--accent); }

.bar { display: flex; height: 1.5rem; border-radius: 0.4rem; overflow: hidden; border: 1px solid var(--quiet);
       background: var(--paper); margin: 0.6rem 0; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.bar span { display: block; border-right: 2px solid var(--paper); }
.bar span:last-child { border-right: 0; }
.fill0 { background: var(--accent); } .fill1 { background: var(--warm); } .fill2 { background: var(--good); }
.fill3 { background: var(--quiet); }
.swatch { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 0.2rem; margin-right: 0.5rem;
          print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.odds { max-width: 40rem; font-size: 0.92rem; }
.odds .row { display: grid; grid-template-columns: 8.5rem 1fr 8.5rem; column-gap: 0.9rem; align-items: center; }
.odds .value { text-align: right; font-variant-numeric: tabular-nums; font-weight: 600; white-space: nowrap; }
.band { stroke: var(--accent); stroke-width: 8; stroke-linecap: round; opacity: 0.4; }
.prior { stroke: var(--ink); stroke-width: 2.5; } .rail { stroke: var(--line); stroke-width: 8; stroke-linecap: round; }

.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: 1.2rem 1.6rem; }
.panel { margin: 0; break-inside: avoid; } .panel svg { display: block; width: 100%; height: auto; overflow: visible; }
.panel .title { fill: var(--ink); font-size: 13.5px; font-weight: 650; } .panel .name { fill: var(--ink); }
.panel .curve { fill: none; stroke: var(--accent); stroke-width: 2.2; stroke-linejoin: round; }
.panel .range { fill: var(--accent); opacity: 0.16; } .panel .point { fill: var(--accent); }
.panel .ring { fill: none; stroke: var(--ink); stroke-width: 1.6; }
.panel .here { fill: var(--ink); font-weight: 650; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.panel .level { stroke: var(--warm); stroke-width: 1.4; stroke-dasharray: 6 3; } .panel .of-level { fill: var(--warm); }

details { margin: 0.8rem 0; } summary { cursor: pointer; color: var(--accent); font-size: 0.95rem; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 0.5rem; padding: 1rem; overflow-x: auto;
      font: 0.8rem/1.45 ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace; }
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
footer { margin-top: 3rem; color: var(--quiet); font-size: 0.85rem; }

@media (max-width: 40rem) {
  body { font-size: 16px; } main { padding: 1.4rem 1rem 3rem; } h1 { font-size: 1.6rem; }
  .forest .row { grid-template-columns: 1fr auto; } .forest .row .strip { grid-column: 1 / -1; grid-row: 2; }
  .forest .strip { min-height: 1.3rem; } .forest .row { border-bottom: 1px solid var(--line); }
  .forest .heading { border-bottom: 0; } .forest .axis { border: 0; } .forest .axis .label { display: none; }
  .odds .row { grid-template-columns: 1fr auto; } .odds .row .strip { grid-column: 1 / -1; grid-row: 2; }
  .odds .head .strip { display: none; } .stop { flex-direction: column; align-items: flex-start; }
  .stacked, .stacked tbody, .stacked tr, .stacked th, .stacked td { display: block; }
  .stacked thead { display: none; } .stacked tr { border-bottom: 1px solid var(--line); padding: 0.5rem 0; }
  .stacked th, .stacked td { border: 0; padding: 0.08rem 0; text-align: left; }
  .stacked tbody th { font-weight: 600; } .stacked td.number { text-align: left; } .stacked td:empty { display: none; }
  .stacked td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); font-weight: 400; }
  .forest .heading .strip { display: none; } math { font-size: 0.98em; } .formula { padding: 0.7rem 0.4rem; }
}
@page { margin: 15mm; }
@media print {
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; } h2, h3 { break-after: avoid; }
  h2 { margin-top: 1.6rem; } .cards dd { font-size: 1rem; }
  .scroll, pre, .formula { overflow: visible; }
  pre { font-size: 7.5pt; white-space: pre-wrap; overflow-wrap: anywhere; }
  .panels { grid-template-columns: 1fr 1fr; } .cards { grid-template-columns: repeat(auto-fit, minmax(6rem, 1fr)); }
  tr, .cards div, .formula, .bar, .odds, .stop, figcaption { break-inside: avoid; }
  thead { display: table-header-group; }
  figcaption { break-before: avoid; } summary { list-style: none; color: var(--quiet); }
  details::details-content { content-visibility: visible; block-size: auto; display: block; opacity: 1; }
}
"""

STYLE = f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}" + _RULES.replace("DARK", _variables(DARK))
