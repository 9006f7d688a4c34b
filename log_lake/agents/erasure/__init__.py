"""The erasure agent: erases the records that a run names, and resumes every pending erasure.

    find     checks what the run names, begins the erasures, and hands out the pools that have pending ones
    run      continues these erasures by `log_lake.erasure`; Spark tasks read and write the objects
    report   says what was deleted and rewritten, what is held, and how to release it

`policy` reads how long a load may be under way, `plan` decides which erasures a run resumes (both pure).  A
condition goes from the run into the receipt and no further: tasks pass each other only the ids of erasures.
"""
