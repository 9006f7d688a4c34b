"""Values: the types of fields, and comparisons of values of two classes.

    types        the names that users give to types, and the marks of fields
    numbers      the result of a comparison between values of two classes
    units        the factors of the units of sizes and durations

`keys.encoding` defines the classes of values, and their bytes.  `log_lake.texts` reads and shows values as
text, `log_lake.columns` works on whole columns.  Everything here is pure.
"""
