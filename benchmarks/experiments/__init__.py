"""The sources' experiments, one file each: points, a run, claims with a test, a figure."""
