"""Values: what a person or a file wrote, as a value of a field; and a value as text.

    types        the names that users give to types, and the marks of fields
    text         one value of a known class, from text and back: keys on the command line, conditions, CSV, JSON
    numbers      what a comparison with a value of one class says of values of another
    floor, fit   whether an Arrow type holds a value exactly, and which is the greatest below that it holds
    typed_json   whole columns as JSON: as people read it, and as a field without a common type stores it

One property holds for every value that can be stored: what the lake shows of it, read back as a value of its
field, is that value and no other.  The classes of values, and their bytes, are `keys.encoding`'s.  Everything
here is pure.
"""
