"""Effects of a fitted model for a population: summaries, tests, intervals for a mean."""
