"""`make bench`: what the lake costs, beside peers and the physical floor, in one run on one machine.

`data` makes the inputs once, `measure` runs a piece of work in a process of its own (seconds, records, peak
memory), each other module is one benchmark, `__main__` prints them.  Only ratios within a run mean
anything; nothing here asserts a time.
"""
