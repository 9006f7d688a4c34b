"""Reading a snapshot: prune, open, merge in key order, project.

`plan` chooses references (pure), `merge` brings their streams into one order in bounded memory, `scan` ties
them to the store.
"""
