"""Policy files: the pools of a lake and their settings, in YAML.

    nodes       YAML text as nodes that know their places; safe, bounded, without types
    file        the pools that a file names; every fault with its place
    difference  compares the file with the list of pools: what to create, change, drop; pure
    apply       reads the file, and carries out a difference
    export      writes the list of pools as such a file
    schema      the file's JSON schema, and the reference page, from the list of settings
    text        a difference in words

Called by `lake apply`, `lake export` and the operator `LakeApplyOperator`.
"""
