"""Indexes of data objects: what an index rule asks for, the bytes of an index object, writing and reading it.

An index object lies beside a data object and describes one field of it.  By its kind, it says which values are
certainly absent, in which row groups each value is, or how many distinct values there are and how they are
distributed.  No answer depends on it: if it is missing, damaged, or of another rule or object, the data object
is read.

    rule       an index rule: a setting `index.NAME=KIND(FIELD)`
    hashes     values of a field as numbers of 64 bits, equal for values that conditions take as equal
    bloom      a split block Bloom filter over such numbers
    row_groups in which row groups a value of a field of few values is
    sketch     distinct values and quantiles, which can be united over objects
    layout     the bytes of an index object: a header, pages or a body, checksums
    gathering  gathers the values of a field while records pass, and makes the body of each kind
    writing    makes the index objects of a data object while it is written, or afterwards
    cluster    the bucket of a record by the hash of a field: `cluster.by=FIELD:N`; `cluster_rule` is the rule
    lookup     asks index objects on the store whether a value may be in a data object
"""
