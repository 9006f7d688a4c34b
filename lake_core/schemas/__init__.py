"""Schemas: which fields records can have, how the fields of several objects unite, how equal keys combine.

    schema   the stored form of an Arrow schema, its id, and the schema that unites several
    limits   names and nestings that no record can have
    rule     a pool's kind, and the functions of an aggregate pool's fields
    hidden   the columns in which an object stores when each record was written

The room has only data and pure functions: it reads no file.  The journal folds schemas and rebases drafts by
these rules; `log_lake.combine` applies a rule to records.
"""

from lake_core.schemas.rule import APPEND, Rule

__all__ = ["APPEND", "Rule"]
