"""Operations on whole columns of records that Arrow's kernels do not offer; every room above uses them.

    json_text    columns as JSON: for people, and for fields that have no common type
    nested       takes records, lists and maps apart, and builds columns from their parts
    cast         converts columns and tables to another schema
    keys         encodes the keys of a column as bytes that sort in the order of the pool
    variant      reads the values of Parquet's VARIANT

Everything here is pure.
"""
