"""How well a model predicts: exact values of rows, and what of them is released with noise."""
