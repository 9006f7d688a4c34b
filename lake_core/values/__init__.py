"""Values: the types of fields, and one value as text.

    types        the names that users give to types, and the marks of fields
    text         one value of a known class, from text and back: keys on the command line, conditions, CSV, JSON
    numbers      what a comparison with a value of one class says of values of another

One property holds for every value that can be stored: what the lake shows of it, read back as a value of its
field, is that value and no other.  The classes of values, and their bytes, are `keys.encoding`'s.  Whole columns
are `log_lake.columns`'.  Everything here is pure.
"""
