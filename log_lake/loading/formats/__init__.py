"""The readers of file formats, one module or more for each: every reader yields a block of records at a
time."""
