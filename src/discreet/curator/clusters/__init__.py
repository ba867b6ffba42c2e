"""Records on other machines: Dask's workers and Spark's executors. Imported only where a table is on one of them."""
