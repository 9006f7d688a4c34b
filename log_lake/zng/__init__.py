"""ZNG: values with their types, one after another, as the programs of the ZNG and ZST formats exchange them.

    wire, types      single numbers and values; what a type is
    typedefs         how a stream defines its types; `type_values`: a type as a value
    slices, columns  many values at once, without one Python object per value: the form between ZNG, ZST and Arrow
    rows             top-level values, as bodies (`Rows`) or as columns (`Batch`)
    reader, writer   streams of messages, compressed blocks, ends of streams
    text             values and types as readable text; `text_writer`: lines of such text
    arrow_types      which Arrow type holds a type; `to_arrow`, `from_arrow`: columns to arrays and back
    addresses        addresses, networks, and bytes that should be text, as strings

docs/zng-zst.md says what users see of it.  Nothing here knows of pools; `log_lake.objects` builds upon it.
"""
