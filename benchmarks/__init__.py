"""`make bench`: measures what the lake costs, beside other table formats (peers) and beside a floor: the cheapest
possible form of the same work, such as a plain copy of the files.

`data` makes the inputs once, `measure` runs a piece of work in a process of its own (seconds, records, peak
memory), each other module is one benchmark, `__main__` prints them.  All lines of a run are measured on one
machine. Only ratios within a run mean anything; nothing here asserts a time.
"""
