"""Times of fits beyond memory and beyond a machine, one file per place where the rows are."""
