"""What ``solver="auto"`` is: a signal, a recipe and a table of settings."""

from discreet.default.recipe import Recipe as Recipe
from discreet.default.recipe import Shares as Shares
from discreet.solvers.signal import Signal as Signal
