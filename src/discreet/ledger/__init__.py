"""The durable account of everything that was ever spent on a data set."""
