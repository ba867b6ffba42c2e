from discreet.default.recipe import Recipe as Recipe
from discreet.default.recipe import Shares as Shares
