"""The core of a log-structured lake: journal, checkpoints, naming, and what one pool's history decides.

It reads no source file and no data object, and knows no query engine, agent, Airflow or Spark.  `log_lake` is
built on it; people import that one.  Its rooms (packages) are in layers, listed from the top. A room never
imports one of a higher layer; `lint-imports` checks this by pyproject.toml, and a test compares this list with
pyproject.toml:

    catalog        the list of pools
    history        one pool: state, snapshots, rebase, group commit
    journal        numbered entries by put-if-missing; purge
    checkpoints    a folded state as one file

    conditions     which objects and keys a condition can concern
    schemas        fields of records, how they unite, how equal keys combine
    context        store, lake id, ids, clock, author: one value from `Lake` down
    store          the port to a store, local folders, memory

    records        typed actions and their bytes (docs/format.md); from here down no I/O
    values         types of fields, comparisons of values of two classes
    naming         every name on the store
    keys           keys as bytes that sort in the same order
    ids            ids that sort by time
    errors         every error, named by what the caller does next
    phrases        how messages write numbers, choices and unknown names
    faces          packages that import a name when it is first used

Read `journal.journal` for why commits are correct, `history.rebase` for what happens when two writers commit at
once, docs/format.md for the stored bytes, and docs/glossary.md for the words.
"""
