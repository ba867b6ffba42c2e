"""The example data set: a synthetic hospital, generated, of no real person."""
