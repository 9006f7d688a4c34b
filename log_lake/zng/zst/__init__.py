"""ZST: the values of ZNG as columns, separately for each super type (the type of a top-level value).  A reader
reads only the columns that it needs.

    layout           sections and the trailer
    maps             reassembly maps: which segments hold a column
    streams, writer  values to segments in one pass, in bounded memory
    source           reads segments of an object in few requests
    columns, reader  segments to columns; `projection` chooses them
"""
