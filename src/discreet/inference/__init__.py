"""Effects for a population: estimated with their covariance, and shown with standard errors, tests and intervals."""
