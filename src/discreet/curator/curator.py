"""The open wall: answers exactly the planned queries, each with its proof, and refuses the rest."""

from discreet.curator.answers.choices import Choices
from discreet.curator.answers.points import Points
from discreet.curator.answers.shapes import Shapes
from discreet.curator.answers.sums import Sums


class Curator(Sums, Choices, Points, Shapes):
    """Holds the records of one reserved plan. ``PrivateData.open`` makes it; solvers ask it.

    Public: ``domain``, ``loss``, ``budget``, ``plan``, ``noise_multiplier``. Everything a method returns
    is noisy and was paid for. A sum's noise is drawn before the records are read. A curator is neither copied
    nor pickled, and answers only in the process that opened it.
    """
