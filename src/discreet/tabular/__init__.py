"""From a table with declared columns to a private model."""
