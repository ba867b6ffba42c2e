"""Tables: cells of files and frames, read by a schema into blocks of bounded rows."""

import discreet.schema  # noqa: F401  says how to install pyarrow where it is missing
