"""What the tests of Spark share: a session on this machine, where Java and pyspark are, and frames in partitions."""

import os
import shutil
import sys
from contextlib import contextmanager
from importlib.util import find_spec

import pandas as pd
import pytest

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None, reason="Spark needs java and pyspark"
)


@contextmanager
def local_session():
    """A session in a virtual machine of its own, which this process starts."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.task.maxFailures": "1",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def frame_in_parts(spark, frame, types, parts):
    """Return a frame of Spark with the same rows in the same order."""
    rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in frame.astype(object).values.tolist()]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, parts), types)
