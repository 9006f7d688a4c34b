"""Formal models of the protocol, and Spin, which visits every state that they can reach (docs/models.md)."""
