"""Lines before the header of a CSV file that describe it: Excel's `sep=`, and those of W3C logs.

Called by `csv_text`.
"""

from __future__ import annotations

import re

from log_lake.loading.csv_options import CsvOptions

_SEPARATOR = re.compile(rb'"?sep=([^\r\n"])"?(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
_W3C = re.compile(rb"(?:\xef\xbb\xbf)?#(?:Software|Version|Date|Start-Date|Fields): ?")
_TABS = re.compile(rb"^[^#\r\n][^\r\n]*\t", re.MULTILINE)
_FIELDS = re.compile(rb"^#Fields: *([^\r\n]*)", re.MULTILINE)


def separator_line(begin: bytes) -> tuple[str, bytes]:
    """Returns the delimiter that Excel's line `sep=;` at the beginning of a file names, and the bytes of that
    line.  Both are empty if there is no such line."""
    line = _SEPARATOR.match(begin)
    if line is None or not line[1].isascii():
        return "", b""
    return line[1].decode(), line[0]


def w3c_log(begin: bytes, options: CsvOptions) -> str:
    """Returns what a user must do to load a log in the W3C's extended format, whose header is a comment.

    Returns "" if the file is not such a log, or if the options already say so.  Web servers such as IIS write
    this format; CloudFront puts tabs between the values.  Read as plain CSV, its first request would become the
    header.
    """
    if options.names or not _W3C.match(begin):
        return ""
    fields = _FIELDS.search(begin)
    names = "NAMES" if fields is None else ",".join(fields[1].decode(errors="replace").split())
    delimiter = "tab" if _TABS.search(begin) else "' '"
    return (
        "this is a log in the W3C's extended format, whose header is a comment; load it with --format csv "
        f"--csv-comment '#' --csv-delimiter {delimiter} --csv-header none --csv-null - --csv-names {names}"
    )
