"""The pytest plug-in: a fixture ``privacy``. Loaded with every pytest run where discreet is installed.

So it imports nothing but pytest until the fixture is used, and has no hooks, options or markers.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from discreet.testing.checks import Privacy


@pytest.fixture(scope="session")
def privacy() -> "Privacy":
    """Checks of privacy for a solver, a loss, or any fit function: they fail with what was found."""
    from discreet.testing.checks import Privacy

    return Privacy()
