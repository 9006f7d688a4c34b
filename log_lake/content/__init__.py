"""Content sums: whether two sets of records are equal, without comparing their records.

    values     a number of 64 bits for each value of a column: the same for equal values, whatever their type
    scalars    the same for numbers, times and texts
    content    the sum of the records of tables: the same in any order, and however they are cut

A content sum finds accidents, not attacks: nothing in it is secret (decision 375).  It knows no pools and no
stores.  Callers: views (`lake verify`), rewritings.
"""
