"""How numbers are said to people, by the command and by the agents alike."""

from __future__ import annotations


def counted(count: int, noun: str, nouns: str = "") -> str:
    """`1 object`, `1,000 objects`; `nouns` where the plural is not made by an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"


def human_size(size: int) -> str:
    """Bytes with a decimal unit: `4.7 MB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
