"""How well a released model predicts other rows: with noise, for a budget of its own; or exactly, of public rows."""

from discreet.models.scoring.private import private_score
from discreet.models.scoring.public import public_score
from discreet.models.scoring.result import PrivateScore

__all__ = ["PrivateScore", "private_score", "public_score"]
