"""Effects in a report: a forest plot, a table with what matters first, caveats below, a dash for what is hidden."""

import re

from discreet.inference.text import DASH
from discreet.report.effects_section import effects_section
from tests.report import samples


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


def test_a_hidden_part_of_a_curve_is_a_gap():
    page = effects_section(samples.bent_effects(hidden=[0]))
    assert page.count('class="curve"') == 1, "of the smooth one alone"
    assert "noise hides this curve" in page
    assert "hidden at" in page
