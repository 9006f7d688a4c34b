"""Values as people write them: text as a value of a field or a key, and back.

    classes      which class a text may be of, for a field whose class is known by its records
    keytext      a key, or a range of keys, from the options of a command, and as text
    nametext     names of fields in text: quoted if they must be
    exact        a number of JSON, exactly
    typed_json   a value as JSON that reads back as exactly the same value
    floor, fit   whether an Arrow type holds a value exactly, and which is the greatest below that it holds

`lake_core.values.text` reads and shows one value of a known class.  Everything here is pure.
"""
