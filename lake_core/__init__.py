"""The core of a log-structured lake: journal, checkpoints, naming, and what one pool's history decides.

It reads no source file and no data object, and knows no query engine, agent, Airflow or Spark.  `log_lake` is built
on it; people import that one.  Its rooms stand on floors, and a lower floor never imports a higher one
(pyproject.toml holds them to it, a test holds this list to pyproject.toml):

    catalog        the list of pools
    history        one pool: state, snapshots, rebase, group commit
    journal        numbered entries by put-if-missing; purge
    checkpoints    a folded state as one file

    conditions     which objects and keys a condition can concern
    schemas        fields of records, how they unite, how equal keys combine
    leases         who is at work on a pool, so that nothing it needs is deleted
    context        store, lake id, ids, clock, author: one value from `Lake` down
    store          local folders, memory, S3, Google Cloud Storage, locks

    records        typed actions and their bytes (docs/format.md); from here down no I/O
    values         types of fields, one value as text
    naming         every name on the store
    keys           keys as bytes that sort alike
    ids            ids that sort by time
    extras         packages that an extra of the wheel brings
    errors         every error, named by what the caller does next
    phrases        how numbers, choices and unknown names are said
    faces          packages that import a name when it is first used

Read `journal.journal` for what makes it right, `history.rebase` for what happens when two writers meet,
docs/format.md for what is stored, docs/glossary.md for the words.
"""
