"""Values: the types of fields, and one value as text.

    types        the names that users give to types, and the marks of fields
    text         one value of a known class, from text and back: keys on the command line, conditions, CSV, JSON
    numbers      the result of a comparison between values of two classes

One property holds for every value that can be stored: the text that the lake shows, read back as a value of its
field, is that value and no other.  The classes of values, and their bytes, are `keys.encoding`'s.  Whole columns
are `log_lake.columns`'.  Everything here is pure.
"""
