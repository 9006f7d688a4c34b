"""Pools as a file: which pools a lake has and their settings, in YAML.

    nodes       YAML text as nodes that know their places; safe, bounded, without types
    file        nodes as the pools that the file names; every fault with its place
    difference  the file against the list of pools: what to create, change, drop; pure
    apply       reading the file, and carrying out a difference
    export      the list of pools as such a file
    schema      the file's JSON schema, and the reference page, from the list of settings
    text        a difference in words

Called by `lake apply`, `lake export` and the operator `LakeApplyOperator`.
"""
