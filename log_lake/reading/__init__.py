"""Reads a revision: chooses the references that can have the wanted records, merges their objects in key order,
returns the wanted columns.

`plan` chooses references (pure), `merge` brings their streams into one order in bounded memory, `scan` combines
both on the store.
"""
