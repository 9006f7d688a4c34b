"""Indexes of data objects: what an index rule asks for, the bytes of an index object, writing and reading it.

An index object lies beside a data object and says which values of one field are certainly not in it.  No answer
depends on it: if it is missing, damaged, or of another rule or object, the data object is read.

    rule       an index rule: a setting `index.NAME=bloom(FIELD)`
    hashes     values of a field as numbers of 64 bits, equal for values that conditions take as equal
    bloom      a split block Bloom filter over such numbers
    layout     the bytes of an index object: a header, pages, checksums
    writing    makes the index objects of a data object while it is written, or afterwards
    lookup     asks index objects on the store whether a value may be in a data object
"""
