"""Manifests, the lists of files of a published table.  Only those that changed are written again.

A manifest whose files are all in the new table stays as it is.  One that lost files is written again with the
files that are left.  New files go into a new manifest.  If there are too many manifests, all are written again
as few, because a reader opens each.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.io import InputFile, OutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema

from log_lake.loading.expansion import Expansion
from log_lake.loading.formats.avro_container import open_container
from log_lake.loading.formats.avro_values import values_of

MAX_MANIFESTS = 32
"""Manifests of one content in a table.  If there are more, all are written again as few."""

MAX_ENTRIES = 8_192
"""Files in one manifest, which a reader decodes as a whole: about 2 MB."""

MAX_FREE = 256 << 20
"""Bytes that a manifest or a list of manifests may always have when unpacked, which leaves 32 KB for each of
`MAX_ENTRIES` files.  A larger one may have at most a hundred times its stored size.  Without a limit, kilobytes
of crafted Avro could fill the memory of the process."""

FORMAT = 2
"""Version of Iceberg's format (decision 92)."""

_CODEC = "deflate"


class MemoryFile(OutputFile, InputFile):
    """A file of Iceberg in memory, at its location; the caller stores it."""

    def __init__(self, location: str, data: bytes = b"") -> None:
        super().__init__(location)
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        return bool(self.data)

    def to_input_file(self) -> MemoryFile:
        return self

    def open(self, seekable: bool = True) -> Any:
        return io.BytesIO(self.data)

    def create(self, overwrite: bool = False) -> Any:
        return _Written(self)


class _Written(io.BytesIO):
    """A buffer whose bytes become those of the file when it is closed."""

    def __init__(self, file: MemoryFile) -> None:
        super().__init__()
        self._file = file

    def close(self) -> None:
        if not self.closed:
            self._file.data = self.getvalue()
        super().close()


class _DeletesWriter(ManifestWriterV2):
    """Writes a manifest of files of deletes, which pyiceberg can read but not write."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


_WRITERS = {ManifestContent.DATA: ManifestWriterV2, ManifestContent.DELETES: _DeletesWriter}


@dataclass(frozen=True)
class Listed:
    """A manifest, with the files that it lists."""

    manifest: ManifestFile
    entries: tuple[ManifestEntry, ...]


def is_deletes(file: DataFile) -> bool:
    """Whether the file hides records of an object."""
    return bool(file.content == DataFileContent.POSITION_DELETES)


class Files:
    """Reads what a table lists; `read` gives the bytes at a location."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def new_input(self, location: str) -> InputFile:
        """Returns the file at a location, in the form that pyiceberg wants.

        pyiceberg's decoder reads beyond the end of a damaged file, which ends the process.  So fastavro, which
        checks the end, reads the file first, and raises.  Both get the blocks uncompressed, with a limit of
        size.
        """
        data = self._read(location)
        container = open_container(io.BytesIO(data))
        plain = container.uncompressed(Expansion(most=100, free=MAX_FREE, size=len(data)))
        unpacked = open_container(io.BytesIO(plain))
        for _ in values_of(unpacked, unpacked.schema, Expansion(size=len(plain))):
            pass
        return MemoryFile(location, plain)

    def listed(self, manifest_list: str) -> list[Listed]:
        """Returns the manifests of a table, with their files."""
        manifests = list(read_manifest_list(self.new_input(manifest_list)))
        return [Listed(one, tuple(one.fetch_manifest_entry(self))) for one in manifests]


@dataclass
class ManifestsOf:
    """Writes the manifests of one snapshot; `written` are the files that the caller must store."""

    snapshot_id: int
    schema: Schema
    locations: Iterator[str]
    written: list[MemoryFile]

    def rewritten(
        self,
        content: ManifestContent,
        before: Sequence[Listed],
        *,
        kept: Collection[str],
        new: Sequence[DataFile],
    ) -> list[ManifestFile]:
        """Returns the manifests with this content: the earlier files in `kept`, and the new files."""
        of_content = [one for one in before if one.manifest.content == content]
        manifests: list[ManifestFile] = []
        left: list[ManifestEntry] = []
        for one in of_content:
            entries = [entry for entry in one.entries if entry.data_file.file_path in kept]
            if len(entries) == len(one.entries):
                manifests.append(one.manifest)
            else:
                left += entries
        if len(manifests) + bool(left) + bool(new) > MAX_MANIFESTS:
            manifests = []
            left = [e for one in of_content for e in one.entries if e.data_file.file_path in kept]
        added = [_added(file, self.snapshot_id) for file in new]
        all_entries = [*left, *added]
        for first in range(0, len(all_entries), MAX_ENTRIES):
            manifests.append(self._manifest(content, all_entries[first : first + MAX_ENTRIES]))
        return manifests

    def _manifest(self, content: ManifestContent, entries: Iterable[ManifestEntry]) -> ManifestFile:
        file = MemoryFile(next(self.locations))
        with _WRITERS[content](
            UNPARTITIONED_PARTITION_SPEC, self.schema, file, self.snapshot_id, _CODEC
        ) as writer:
            for entry in entries:
                if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == self.snapshot_id:
                    writer.add(entry)
                else:
                    writer.existing(entry)
        self.written.append(file)
        return writer.to_manifest_file()

    def manifest_list(self, manifests: Sequence[ManifestFile], *, sequence: int, location: str) -> None:
        """Writes the list of the snapshot's manifests; `sequence` is the snapshot's sequence number."""
        file = MemoryFile(location)
        with write_manifest_list(FORMAT, file, self.snapshot_id, None, sequence, _CODEC) as writer:
            if manifests:
                writer.add_manifests(list(manifests))
        self.written.append(file)


def _added(file: DataFile, snapshot_id: int) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=snapshot_id,
        sequence_number=None,
        file_sequence_number=None,
        data_file=file,
    )
