"""Private selection: the best of several candidates, chosen with a privacy guarantee."""
