"""Tables: cells of files and frames, read by a schema into blocks of bounded rows."""
