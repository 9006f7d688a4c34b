"""Values as people write them: text as a value of a field or a key, and back.

    value        one value of a known class, from text and back: keys, conditions, CSV, JSON, options
    classes      the classes that a text may be read as, for a field whose class the records show
    keytext      a key, or a range of keys, from the options of a command, and back to text
    nametext     names of fields in text: quoted if they must be
    exact        a JSON number, exactly
    typed_json   a value as JSON that reads back as exactly the same value
    floor, fit   whether an Arrow type holds a value exactly, and the greatest value below that it holds

One property holds for every value that can be stored: the text that the lake shows, read back as a value of its
field, is that value and no other.  All functions here are pure.
"""
