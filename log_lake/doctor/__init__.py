"""Whether a lake is well: a verdict for each pool, and findings, each with its reason and the command that mends
it.

    look, lake_look    gather signs: small facts from journals, jobs, notes and settings (thin)
    kinds, lake_kinds  turn signs into findings, a row of a table for each kind (pure)
    examine            looks at all pools, side by side, and remembers those that are well

It opens no data object of a pool.  What it cannot see is a finding too, so such a pool is never well. Callers:
`lake doctor`, SQL, the web view, Airflow.
"""
