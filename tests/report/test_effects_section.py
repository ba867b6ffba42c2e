"""Effects in a report: a forest plot, a table with what matters first, caveats below, a dash for what is hidden."""

import re
from html import unescape

from discreet.inference.text import DASH, HIDDEN
from discreet.report.effects_section import effects_section
from tests.report import samples


def rows_of(page):
    found = re.findall(r"<tr>(.*?)</tr>", page)
    return [[unescape(re.sub(r"<.*?>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in found]


def test_the_table_has_feature_effect_interval_and_p():
    page = effects_section(samples.effects())
    head, *rows = rows_of(page[: page.index("<details>")])
    assert head == ["feature", "odds ratio", "95% interval", "p"]
    frame = samples.effects().ratios()
    assert rows[0] == ["age", "1.03", f"{frame.low['age']:.4g} to {frame.high['age']:.4g}", "<.001"]
    assert [row[0] for row in rows] == [
        "age", "days_in_the_intensive_care_unit", "ward = surgery", "ward (other)", "rare",
    ], "no intercept: it is no ratio"  # fmt: skip
    assert rows[3][1:] == rows[4][1:] == [DASH] * 3
    assert any(row[0] == "intercept" for row in rows_of(effects_section(samples.effects(ratio=""))))


def test_the_plot_has_a_whisker_per_shown_effect_and_its_own_number():
    """The same number as in the table: one per effect; ratios on a logarithmic scale, nothing drawn for hidden ones."""
    page = effects_section(samples.effects())
    figure = page[page.index("<figure") : page.index("</figure>")]
    assert figure.count('class="whisker"') == figure.count('class="dot"') == 3
    assert re.findall(r'class="value">([^<]*)<', figure) == ["1.03", "1.492", "0.3012", DASH, DASH, ""]
    ends = [float(x) for x in re.findall(r'whisker" x1="([\d.]+)%" x2="[\d.]+%"', figure)]
    middle = float(re.search(r'zero" x1="([\d.]+)%"', figure)[1])
    assert ends[0] > middle > ends[2]
    assert "logarithmic" in figure
    assert "logarithmic" not in effects_section(samples.effects(ratio=""))
    assert effects_section(samples.effects(ratio="")).count(">0.4<") == 3, "plot, table and details"


def test_caveats_and_what_hidden_means_are_below():
    page = effects_section(samples.effects())
    below = page[page.index("</table>") :]
    for said in (
        HIDDEN,
        "Target: the population.",
        "Weights: Unusual rows are down-weighted.",
        "Bias: Standard errors",
    ):
        assert said in below
    assert page.index("Do not trust it.") < page.index("<figure")


def test_curves_have_a_band_and_a_panel_each():
    page = effects_section(samples.bent_effects())
    assert page.count('class="panel"') == page.count('class="curve"') == page.count('class="range"') == 2
    assert samples.EVIL not in page
    assert "age, against 18" in page
    rows = rows_of(page[: page.index("<h3>")])[1:]
    assert [row[0] for row in rows] == ["age at 40", "age at 90", "age at 40 x sex"], "a smooth curve's parts are none"
    several = effects_section(samples.bent_effects("relative risk ratio", ("home", "ward")))
    assert several.count('class="panel"') == 4
    assert "ward: age, against 18" in several
    assert "<h3>Curves" not in effects_section(samples.effects())


def test_a_hidden_part_of_a_curve_is_a_gap():
    page = effects_section(samples.bent_effects(hidden=[0]))
    assert page.count('class="curve"') == 1, "of the smooth one alone"
    assert "noise hides this curve" in page
    assert "hidden at" in page
