"""Readers, one for each file format: a block of records at a time."""
