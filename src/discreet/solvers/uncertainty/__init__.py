"""What the noise of a run does to its coefficients: from what a solver did, not inside it."""
