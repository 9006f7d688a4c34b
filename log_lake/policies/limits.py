"""Limits of a policy file, so that no file, by mistake or malice, blocks its reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PolicyLimits:
    """Limits of a policy file: its bytes; its nodes (texts and collections, including repetitions by aliases); the
    depth of nested collections; the faults that are listed."""

    max_bytes: int = 4 << 20
    max_nodes: int = 400_000
    max_depth: int = 16
    max_faults: int = 50


POLICY_LIMITS = PolicyLimits()
"""The defaults: a file of 10,000 pools with 10 settings each has 230,000 nodes."""
