"""ZST: the values of ZNG as columns, those of each super type apart, so that a reader takes only what it needs.

layout           sections and the trailer
maps             reassembly maps: which segments hold a column
streams, writer  values to segments in one pass; bounded memory
source           segments out of an object in few requests
columns, reader  segments to columns; `projection` says which
"""
