"""The index agent: makes the index objects that data objects lack, because a rule is younger or an index was lost.

`plan` declares the setting and decides (pure); `run` looks and has the indexes made, and `report` has the words.
docs/indexes.md says what an index rule is.
"""
