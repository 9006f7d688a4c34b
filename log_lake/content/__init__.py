"""Content sums: whether two sets of records are equal, without comparing their records.

    values   a hash of 64 bits for each value of a column: the same for equal values, whatever their type
    scalars  such hashes of plain values: numbers, times, texts
    content  the sum of the hashes of a table's records: the same in any order, and however they are cut

A content sum finds accidents, not attacks: nothing in it is secret (decision 375).  It knows no pools and no
stores.  Callers: views (`lake verify`), rewritings.
"""
