"""The derive agent: keeps derived pools as of the newest versions of their sources.

`plan` reads the settings and decides (pure); `run` does the steps, and `report` has the words.
docs/derived.md says what a derived pool is.
"""
