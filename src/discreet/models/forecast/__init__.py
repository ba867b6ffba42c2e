"""The parts of a forecast: the law of public synthetic rows, an estimator's facts, references, theory, the result."""
