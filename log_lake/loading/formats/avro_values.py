"""The values of an Avro file, one at a time.  fastavro decodes them; what it does not check is checked here.

fastavro looks an alternative of a union up by its number, in a Python list.  There a damaged number -1 means the
last alternative, so another type would be read.  So it gets a dict of the alternatives, which has no number -1
(decision 490).

fastavro also reads a number of more than 64 bits as another number (`avro_numbers`).

Called by `avro`, and by the reader of manifests in `publish`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from lake_core.errors import LakeError
from log_lake.loading.expansion import Expansion
from log_lake.loading.formats.avro_container import AvroFile, TooLarge
from log_lake.loading.formats.avro_numbers import check_numbers, may_have_long_numbers
from log_lake.loading.formats.promises import block_fault

_VALUE = "value"


def values_of(container: AvroFile, schema: Any, expansion: Expansion) -> Iterator[tuple[Any, int]]:
    """Yields each value of the file, and how many bytes it takes.

    `schema` may differ from the file's, but the values must have the same bytes by both.  Raises TooLarge if the
    blocks have more content than `expansion` allows, and ValueError, which names the block, for a damaged one.
    """
    from fastavro import parse_schema, schemaless_reader  # few files are Avro, and loading it takes time

    outer = {"type": "record", "name": "of_file", "fields": [{"name": _VALUE, "type": schema}]}
    checked = _checked(parse_schema(outer))
    number = 1
    try:
        for count, content in container.blocks(expansion):
            data, begin = io.BytesIO(content), 0
            in_doubt = may_have_long_numbers(content)
            for _ in range(count):  # bounded by `expansion`
                value: Any = schemaless_reader(data, checked, None, handle_unicode_errors="surrogateescape")
                end = data.tell()
                if in_doubt and may_have_long_numbers(content, begin, end):
                    check_numbers(content, begin, checked)
                yield value[_VALUE], end - begin
                begin = end
            if fault := block_fault(count, len(content) - begin):
                raise ValueError(fault)
            number += 1
    except (LakeError, TooLarge):
        raise
    except KeyError as error:
        raise ValueError(f"block {number}: a union has no alternative {error}") from error
    except EOFError as error:
        raise ValueError(f"block {number}: it ends within a value") from error
    except Exception as error:  # fastavro and the decompressors raise many classes for damage
        raise ValueError(f"block {number}: {str(error) or type(error).__name__}") from error


def _checked(schema: Any) -> Any:
    """Returns a parsed schema in which each union is a dict of its alternatives by number.

    fastavro takes a dict of the type "union" for a union, and raises KeyError for a number that is not in it.
    """
    if isinstance(schema, list):
        return {"type": "union", **{at: _checked(one) for at, one in enumerate(schema)}}
    if not isinstance(schema, dict):
        return schema
    inner = {name: _checked(schema[name]) for name in ("type", "items", "values") if name in schema}
    if "fields" in schema:
        inner["fields"] = [{**member, "type": _checked(member["type"])} for member in schema["fields"]]
    if names := schema.get("__named_schemas"):
        inner["__named_schemas"] = {name: _checked(named) for name, named in names.items()}
    return {**schema, **inner}
