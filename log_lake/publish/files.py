"""The files of the next table: which descriptions are reused from the previous table, and which are new.

The description of an object is reused unchanged.  So is its file of deletes, if the rule that hides its records
is the same: by the digest in the file's name, or, without a digest, by the rule in the revision that the
previous table shows.  Other objects are read, several in parallel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count

import pyarrow as pa
from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.table.metadata import TableMetadataV2

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput
from lake_core.history import Reference
from lake_core.ids import ID_LENGTH, in_home, without_home
from log_lake.lake.view import View
from log_lake.objects.containers.stored_names import stored_names
from log_lake.objects.copied import copy_name, copy_prefix
from log_lake.objects.read import DataObject
from log_lake.publish.commit import create_file, read_file
from log_lake.publish.conversion import copied_file
from log_lake.publish.data_files import data_file, deletes_description
from log_lake.publish.manifests import Files, Listed, ManifestsOf, MemoryFile, is_deletes
from log_lake.publish.metadata import Layout, current_snapshot, is_promoted, lost_names, next_sequence
from log_lake.publish.place import Place, location_of
from log_lake.publish.positions import deletes_file, hidden_positions
from log_lake.publish.published import check_files
from log_lake.publish.rules import ObjectRule
from log_lake.reading.plan import ScanPlan

_AT_ONCE = 8
"""How many objects are read in parallel; each takes a few requests to the store."""


@dataclass
class Before:
    """What the next table may reuse: the files of the previous table, by object; and the rules by which records of
    its objects were hidden, as far as they are known."""

    listed: Sequence[Listed] = ()
    data: dict[str, DataFile] = field(default_factory=dict)
    deletes: dict[str, DataFile] = field(default_factory=dict)
    rules: Mapping[str, ObjectRule] = field(default_factory=dict)


def files_before(
    before: TableMetadataV2 | None,
    layout: Layout,
    place: Place,
    rules: Mapping[str, ObjectRule],
    *,
    at: Callable[[str], str],
    homes: Iterable[str] = (),
) -> Before:
    """Returns the files of the previous table that may be reused; an empty result means that none may.

    `at` returns the location of an object of the pool, from its id.  `homes`: other pools in whose folders
    objects of a clone may lie.

    None may be reused if a column got a wider type, or if readers no longer find a key field by its own name.
    Raises Corrupt if the table names a file that is neither an object of the pool nor a file of the table.
    """
    if before is None or is_promoted(before, layout) or lost_names(before, layout):
        return Before()
    was = Before(Files(partial(read_file, place)).listed(current_snapshot(before).manifest_list), rules=rules)
    for one in was.listed:
        check_files([one.manifest.manifest_path], place.location_of("metadata/"))
        for entry in one.entries:
            file = entry.data_file
            object_id = file.file_path.rpartition("/")[2][:ID_LENGTH]
            if is_deletes(file):
                check_files([file.file_path], place.location_of("deletes/"))
            elif file.file_path.startswith(copies := place.location_of("data/")):
                check_files([file.file_path], copies)
            elif file.file_path not in {at(object_id), *(at(in_home(object_id, home)) for home in homes)}:
                raise Corrupt(f"it names {file.file_path[:200]!r}, which is no object of the pool")
            (was.deletes if is_deletes(file) else was.data)[object_id] = file
    return was


def location_of_object(view: View, object_id: str) -> str:
    """Returns the location of a data object of the view's pool, as readers name it.  Raises Corrupt if it can have
    none."""
    return location_of(view.store, naming.data_object(view.config.id, object_id))


@dataclass(frozen=True)
class Described:
    """An object of the table: its description, the description of its deletes if it has any, and whether these are
    new."""

    data: DataFile
    deletes: DataFile | None
    is_new: bool
    has_new_deletes: bool


@dataclass(frozen=True)
class Describing:
    """Describes the data objects of `view` as files of the published table in the folder `place`."""

    view: View
    place: Place
    layout: Layout
    was: Before
    new_id: Callable[[], str]
    columns: pa.Schema
    copied: Collection[str]
    """Schemas of objects that are copied, by id."""

    def described(self, rules: Iterable[ObjectRule]) -> list[Described]:
        """Returns descriptions of the table's objects, without objects whose records are all hidden.

        Writes new files of deletes.  Raises InvalidInput, ObjectMissing, Corrupt, Unavailable.
        """
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return [one for one in threads.map(self._describe, rules) if one is not None]

    def _describe(self, rule: ObjectRule) -> Described | None:
        if rule.references[0].schema in self.copied:
            return self._copy(rule)
        id = without_home(rule.object)
        named = self.place.location_of(f"deletes/{id}-{rule.digest(self.view.state.lifts)}-")
        location = location_of_object(self.view, rule.object)
        data, deletes = self.was.data.get(id), self.was.deletes.get(id)
        data = None if data is None or data.file_path != location else data
        if data is not None and (
            self.was.rules.get(rule.object) == rule
            if deletes is None
            else deletes.file_path.startswith(named)
        ):
            return Described(data, deletes, is_new=False, has_new_deletes=False)
        store, pool_id = self.view.store, self.view.config.id
        with DataObject.at(store, rule.references[0], pool_id=pool_id) as opened:
            self._check_names(opened)
            positions = hidden_positions(rule, opened, self.view, store)
            if len(positions) == opened.metadata.records:
                return None
            new = data or data_file(
                opened,
                rule.references[0].columns,
                location=location,
                layout=self.layout,
            )
        if not len(positions):
            return Described(new, None, is_new=data is None, has_new_deletes=False)
        deletes_location = f"{named}{self.new_id()}.parquet"
        file = deletes_file(location, positions)
        create_file(self.place, deletes_location, file)
        hides = deletes_description(
            location=deletes_location, size=len(file), count=len(positions), of=location
        )
        return Described(new, hides, is_new=data is None, has_new_deletes=True)

    def _copy(self, rule: ObjectRule) -> Described | None:
        """Returns the copy of an object with converted columns; the copy of the previous table if it is the
        same."""
        what = f"{rule.digest(self.view.state.lifts)} {self.columns}"
        digest = hashlib.sha256(what.encode()).hexdigest()[:20]
        id = without_home(rule.object)
        named = self.place.location_of(copy_prefix(id, digest))
        before = self.was.data.get(id)
        if before is not None and before.file_path.startswith(named):
            return Described(before, None, is_new=False, has_new_deletes=False)
        location = self.place.location_of(copy_name(id, digest, self.new_id()))
        plan = replace(self._plan, references=tuple(self._planned.get(rule.object, ())))
        new = copied_file(plan, self.view, self.columns, self.layout.names, self.place, location=location)
        return None if new is None else Described(new, None, is_new=True, has_new_deletes=False)

    @cached_property
    def _plan(self) -> ScanPlan:
        """Returns the scan of all objects; each copy uses its part of it."""
        return self.view.plan(columns=self.view.names.shown_columns(self.columns.names))

    @cached_property
    def _planned(self) -> dict[str, list[Reference]]:
        """The references of the scan, by object."""
        by_object: dict[str, list[Reference]] = {}
        for reference in self._plan.references:
            by_object.setdefault(reference.object, []).append(reference)
        return by_object

    def _check_names(self, opened: DataObject) -> None:
        """Raises InvalidInput if the object names a field of the key so that readers take it for another field."""
        name = self.view.config.name
        for field_name in stored_names(opened.schema.names, self.view.key):
            if field_name not in opened.metadata.stored_as and field_name in self.layout.inside:
                raise InvalidInput(
                    f"pool {name!r}: an earlier program wrote objects with a column {field_name!r}, which Iceberg "
                    "takes for a field inside of a record; let a compaction write them anew (lake compact "
                    f"{name} --strategy full)"
                )


def manifests_of(
    files: Sequence[Described],
    was: Before,
    layout: Layout,
    place: Place,
    *,
    before: TableMetadataV2 | None,
    snapshot_id: int,
    id: str,
) -> tuple[list[MemoryFile], list[ManifestFile], str]:
    """Returns the new manifests of the table, which the caller stores; all its manifests; and the location of
    their list.

    `id` is in the names of the new ones.
    """
    written: list[MemoryFile] = []
    locations = (place.location_of(f"metadata/{id}-m{number}.avro") for number in count())
    manifests = ManifestsOf(snapshot_id, layout.schema, locations, written)
    deletes = [(one.deletes, one.has_new_deletes) for one in files if one.deletes is not None]
    all_manifests: list[ManifestFile] = []
    for content, described in (
        (ManifestContent.DATA, [(one.data, one.is_new) for one in files]),
        (ManifestContent.DELETES, deletes),
    ):
        kept = {file.file_path for file, is_new in described if not is_new}
        new = [file for file, is_new in described if is_new]
        all_manifests += manifests.rewritten(content, was.listed, kept=kept, new=new)
    location = place.location_of(f"metadata/snap-{snapshot_id}-{id}.avro")
    manifests.manifest_list(all_manifests, sequence=next_sequence(before), location=location)
    return written, all_manifests, location


def is_same(files: Sequence[Described], was: Before) -> bool:
    """Whether the previous table has exactly these files."""
    deletes = {one.deletes.file_path for one in files if one.deletes is not None}
    return (
        not any(one.is_new or one.has_new_deletes for one in files)
        and len(files) == len(was.data)
        and deletes == {file.file_path for file in was.deletes.values()}
    )
