"""Derived pools: pools that hold the answer of a query over another pool, their source.

To *keep* a derived pool, or its query, is to bring the pool up to date when the source has changed.

    settings     the definition, which lies in the settings of the derived pool
    definition   a query that can be kept: its groups, its columns; or the clause for which it is refused (pure)
    touches      which records of the source changed between two of its versions (pure)
    bounds       the range of keys in which the records of some groups lie (pure)
    engine       touched groups, and their new records, in DuckDB
    step         one step: from one version of the source to a newer one
    standing     how far a derived pool is behind
    create       makes a derived pool

Everything about a derived pool follows from one thing: a transaction replaces the records of some groups by those
that the query has now, and names the version of the source.  Called by the agent `derive`, by
`lake derive`, and from Python.
"""
