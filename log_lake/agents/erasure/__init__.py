"""The erasure agent: erases the records that a run names, and goes on with every erasure that is pending.

    find     checks what the run names, begins the erasures, and hands out the pools that have pending ones
    run      goes on with these, as `log_lake.erasure` does it; objects are read and written in Spark tasks
    report   says what was deleted and rewritten, what is held, and how to release it

`policy` reads how long a load may be under way, `plan` decides which erasures a run goes on with (both pure).  A
condition goes from the run into the receipt and no further: tasks hand each other the ids of erasures.
"""
