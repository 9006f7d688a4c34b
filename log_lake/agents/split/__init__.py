"""The split agent: splits ranges of keys that are too large, and joins those that are small.

`policy` declares the settings and `plan` decides (both pure); `run` reads the samples in footers and commits, and
`report` has the words.
docs/ranges.md says when a pool should have ranges.
"""
