"""Reads a snapshot: prunes references, opens them, merges them in key order, projects columns.

`plan` chooses references (pure), `merge` brings their streams into one order in bounded memory, `scan` combines
both on the store.
"""
