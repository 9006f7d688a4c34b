"""Limits on the fields that a record may have, so that every reader of the lake can read what a load accepted.

A load checks them before anything is committed: names, columns and nesting, which a schema shows.  The readers of
files check each record, so that the message names file and line. docs/limits.md lists them for users.  Called
by `loading`, by other code that brings records in, and by `history`, which limits the fields of a pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

MAX_NESTING = 32
"""Levels of records, lists and maps in one field.  With 35 levels every reader works, with 50 no reader does.  The
JSON readers of Python and Arrow are recursive, and end the process if the recursion is too deep (decision 38)."""

MAX_COLUMNS = 10_000
"""Distinct fields of a pool's records; a field that holds records counts as the fields inside (`leaves`)."""

MAX_NAME_BYTES = 1_024
"""UTF-8 bytes of one field's name."""


def name_fault(name: str) -> str:
    """Returns what is wrong with a field's name; "" if nothing is.  The empty name is allowed, as in JSON."""
    if len(name) * 4 > MAX_NAME_BYTES and len(name.encode(errors="surrogatepass")) > MAX_NAME_BYTES:
        return f"field {name[:40] + '...'!r}: a name may have at most {MAX_NAME_BYTES:,} bytes"
    if "\0" in name:
        return f"field {name!r}: a name cannot have the character NUL; rename the field"
    return ""


def names_fault(names: Iterable[str]) -> str:
    """Returns the first fault among the names of one record; "" if all are valid."""
    seen: set[str] = set()
    for name in names:
        if fault := name_fault(name):
            return fault
        if name in seen:
            return f"field {name!r} occurs more than once; name each field once"
        seen.add(name)
    return ""


def too_deep(name: str) -> str:
    """Returns the message for a field that is nested too deeply."""
    return f"field {name!r}: nested deeper than {MAX_NESTING} records and lists within one another"


def schema_fault(schema: pa.Schema) -> str:
    """Returns, as a message, the first limit that records of the schema exceed; "" if they exceed none."""
    if len(schema) > MAX_COLUMNS:
        return too_wide(len(schema))
    if fault := names_fault(schema.names):
        return fault
    for field in schema:
        if not pa.types.is_nested(field.type):
            continue
        level, depth = [field.type], 0
        while level:  # bounded by the check
            depth += 1
            if depth > MAX_NESTING:
                return too_deep(field.name)
            for kind in level:
                if pa.types.is_struct(kind) and (fault := names_fault(f.name for f in kind)):
                    return f"in field {field.name!r}: {fault}"
            children = [kind.field(i).type for kind in level for i in range(kind.num_fields)]
            level = [
                kind for kind in children if pa.types.is_nested(kind) and not pa.types.is_dictionary(kind)
            ]
    width = sum(1 for _ in leaves(schema))
    return too_wide(width) if width > MAX_COLUMNS else ""


def too_wide(width: int) -> str:
    """Returns the message for records with too many fields; `width` is their number."""
    return f"{width:,} fields; a record may have at most {MAX_COLUMNS:,}, those inside of records counted"


LeafPath = tuple[str | None, ...]
"""Names from the outside in; None stands for the values of a list or a map."""


def leaves(schema: pa.Schema) -> Iterator[LeafPath]:
    """Yields the fields that hold values; a record is replaced by its own fields, also inside lists and maps."""
    stack: list[tuple[LeafPath, pa.DataType]] = [
        ((field.name,), field.type) for field in reversed(list(schema))
    ]
    while stack:  # bounded by the schema
        path, kind = stack.pop()
        if pa.types.is_nested(kind) and kind.num_fields:
            inside = [kind.field(i) for i in range(kind.num_fields)]
            named = pa.types.is_struct(kind)
            stack += [((*path, f.name if named else None), f.type) for f in reversed(inside)]
        else:
            yield path


class Fields:
    """Counts the distinct fields of records that arrive in parts; fields beyond the limit are not added.  It is
    a tree of names: a node without children is a field that holds values."""

    def __init__(self, most: int = MAX_COLUMNS) -> None:
        self.most = most
        self.count = 0
        self._tree: _Names = {}
        self._last: pa.Schema | None = None
        self._advice = ""

    @property
    def full(self) -> bool:
        """Whether hardly any more fields can be added."""
        return self.count * 100 >= self.most * 99

    def take(self, schema: pa.Schema) -> str:
        """Adds the fields of a schema.  Returns the first limit that they exceed, "" if they exceed none."""
        if self._last is not None and schema.equals(self._last):
            return ""
        fault = schema_fault(schema) or self.take_paths(leaves(schema))
        self._last = None if fault else schema
        return fault

    def take_paths(self, paths: Iterable[LeafPath]) -> str:
        """Adds the fields at these paths; returns the fault if there are too many fields then, otherwise ""."""
        added: list[tuple[_Names, str | None]] = []
        for path in paths:
            node = self._tree
            for name in path:
                node = self._below(node, name, added)
            if self.count > self.most:
                return self._refused(path[0], added)
        return ""

    def _below(self, node: _Names, name: str | None, added: list[tuple[_Names, str | None]]) -> _Names:
        child = node.get(name)
        if child is None:
            child = node[name] = {}
            added.append((node, name))
            self.count += self._adds(node)
        return child

    def _adds(self, node: _Names) -> bool:
        """Whether the newest name in the node is one more field to count."""
        return len(node) > 1 or node is self._tree

    def _refused(self, top: str | None, added: list[tuple[_Names, str | None]]) -> str:
        last = added[-1][1]
        for node, name in reversed(added):
            self.count -= self._adds(node)
            del node[name]
        self._advice = self._advice or self._widest(top)
        where = f"field {last!r} in {top!r}" if last not in (top, None) else f"field {top!r}"
        return (
            f"{where}: with it there are more than {self.most:,} fields, those inside of records counted"
            f"{self._advice}"
        )

    def _widest(self, last: str | None) -> str:
        """Returns the end of the message: to store the widest field as JSON; "" if no field has several inside."""
        widths = {name: _width(node) for name, node in self._tree.items()}
        name = max(widths, key=lambda name: widths[name], default=last)
        if widths.get(name, 0) < 2:
            name = last if last not in widths else None
        return f"; lake set POOL type.{name}=json keeps all of {name!r} as one" if name is not None else ""


_Names = dict[str | None, "_Names"]


def _width(tree: _Names) -> int:
    count, stack = 0, [tree]
    while stack:  # bounded by the tree
        node = stack.pop()
        stack += node.values()
        count += not node
    return count
