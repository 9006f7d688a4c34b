"""Publishes the current state of a branch as the table at a place.

1. It reads the newest metadata there: number N.
2. It refuses fields and objects that cannot be published, before it writes anything (`fields`, `rules`).
3. It sets a tag on the branch.  From here on, nothing that the table needs is deleted.
4. It writes files of deletes, manifests and their list, under names that no other publisher uses.
5. It creates the metadata N+1.  Only one of several publishers can; the others have lost, and delete their tags.
6. It sets the hint to N+1.  Readers see the new table.
7. It deletes the tags of earlier publications: those older than its own tag.  A publisher with an older tag has
   read a metadata up to N, so it has lost or will lose.
8. It deletes files that no table needs any more (`leftovers`).

If a publisher is killed before step 5, the table stays as it was, and the next publication deletes the tag.
After step 5 the new table is there; readers that use the hint see the previous one until the next publication.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput, NotFound, PublishedElsewhere
from lake_core.history.state import Tag
from lake_core.naming import MAIN
from lake_core.records.decoding import decoding
from lake_core.schemas.hidden import ORDER
from log_lake.extras import need
from log_lake.fields.names import digest_of
from log_lake.lake.branches import planned
from log_lake.lake.origins import check_begun_with
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.presence.absence import planning_again
from log_lake.publish.commit import check_free, commit_metadata, create_file, delete_leftovers, point_hint
from log_lake.publish.place import BESIDE, Place, place_of
from log_lake.publish.published import (
    ADVICE,
    BRANCH,
    DAMAGED,
    DELETE_FILES,
    DELETED_RECORDS,
    FIELDS,
    FILES,
    FILTERS,
    POOL,
    RECORDS,
    TAG,
    TIME,
    TRANSACTION,
    TYPES,
    VERSION,
    WITHOUT,
    Published,
    described,
    published_at,
)
from log_lake.publish.rules import ObjectRule, rules_of, schemas_of
from log_lake.publish.settings import STRICT, TEXT
from log_lake.reading.filters import shown_filters

if TYPE_CHECKING:
    from log_lake.publish.files import Described
    from log_lake.publish.names import TableNames

log = logging.getLogger(__name__)

PUBLISHED, UNCHANGED, LOST = "published", "unchanged", "lost"


@dataclass(frozen=True)
class PublishResult:
    """The result of a publication.

    `outcome`: `published`; `unchanged`, if the table already showed this version; `lost`, if another publisher
    was faster.  `number` and `version` are those of the table that is there now.  `objects` and `delete_files`
    count all files of the table, `added` and `added_deletes` those that this publication wrote.  `records`
    counts the records that the table shows, `hidden` the records that are only in its objects.
    """

    pool: str
    branch: str
    location: str
    outcome: str
    number: int
    version: int
    transaction_id: str
    objects: int
    added: int
    delete_files: int
    added_deletes: int
    records: int
    hidden: int


def publish_iceberg(
    pool: Pool, *, branch: str = MAIN, to: str = BESIDE, without: Sequence[str] | None = None
) -> PublishResult:
    """Publishes a branch, or a tag, as an Iceberg table beside the pool's objects, or at a URI.

    `without`: fields to leave out; None: those that the existing table leaves out.  Raises InvalidInput (what
    Iceberg cannot express, and what to do), NotFound, Corrupt, OutcomeUnknown, Unavailable.
    """
    need("iceberg", f"pool {pool.name!r}: publishing as Iceberg")

    def publish() -> PublishResult:
        with planning_again(pool.history):
            return _publish(pool, branch=branch, to=to, without=without)

    return planned(publish)


def _publish(pool: Pool, *, branch: str, to: str, without: Sequence[str] | None) -> PublishResult:
    if pool.sub_pool:
        raise InvalidInput(f"{pool.name}: a sub-pool is not published; name the pool itself")
    place = place_of(pool, branch=branch, to=to)
    moved, before = _found(place)
    there = moved or before
    if there is not None and (there.pool, there.branch) != (pool.config.id, branch):
        raise InvalidInput(
            f"{place.location}: there is the table of branch {there.branch!r} of the pool {there.pool} already; "
            "publish to another folder"
        )
    if there is None:
        check_free(place)
    view = pool.at(branch)
    if not view.held.tip:
        raise InvalidInput(
            f"pool {pool.name!r}: branch {branch!r} has no transaction yet; load records first"
        )
    left_out = before.without if before is not None else ()
    if without is not None:
        left_out = tuple(view.names.stored_names(without))
    publisher = _Publisher(pool, branch, place, left_out, before, moved)
    publisher.plan(view)  # refuses before anything is written
    if publisher.shows(view) and not view.settings["age_off"]:
        assert before is not None
        return publisher.finished(before, UNCHANGED)
    return publisher.publish()


def _found(place: Place) -> tuple[PublishedElsewhere | None, Published | None]:
    """Returns the table at the place; or a table of another place, which is there because the lake was
    moved."""
    try:
        return None, published_at(place)
    except PublishedElsewhere as moved:
        return moved, None


@dataclass(frozen=True)
class _Plan:
    """The table that will show a view of the pool: its columns, by stored names, and the rule of each object."""

    columns: pa.Schema
    names: TableNames
    rules: Mapping[str, ObjectRule]
    stored: Sequence[pa.Schema]
    """The schemas of the table's files."""
    copied: frozenset[str]
    """The ids of the schemas of objects that are copied, with converted columns."""
    texts: frozenset[str]


@dataclass(frozen=True)
class _Publisher:
    pool: Pool
    branch: str
    place: Place
    without: tuple[str, ...]
    """The stored names of fields that the table does not have."""
    before: Published | None
    moved: PublishedElsewhere | None

    @property
    def types(self) -> str:
        """The setting that says how fields are published for which Iceberg has no type."""
        return str(self.pool.settings["publish.types"])

    @property
    def number(self) -> int:
        """The number of the present metadata; 0 if there is none."""
        there = self.before or self.moved
        return 0 if there is None else there.number

    def plan(self, view: View) -> _Plan:
        """Returns the columns and rules of the table.  Raises InvalidInput for what Iceberg cannot express."""
        from log_lake.publish.conversion import as_text, must_be_copied, texts_of
        from log_lake.publish.fields import check_objects, columns_of, upsert_fields
        from log_lake.publish.names import check_columns, names_of
        from log_lake.publish.schema import check_paths

        name = self.pool.name
        fields = upsert_fields(view.schema) if view.rule.kind == "upsert" else view.schema
        converts = self.types == TEXT
        left_out = [shown for one in self.without if (shown := view.names.of_stored(one)) is not None]
        shown = columns_of(as_text(fields) if converts else fields, pool_name=name, without=left_out)
        columns = view.names.stored_columns(shown)
        rules = rules_of(view)
        objects = schemas_of(rules, view)
        ids = {rule.references[0].schema for rule in rules.values()} if converts else set()
        texts = texts_of(view.names.stored_columns(fields), columns)
        copied = frozenset(id for id in ids if must_be_copied(view.state.schema(id), columns, texts))
        of_copied = {view.state.schema(id) for id in copied}
        as_they_are = [(view.names.shown(s), count) for s, count in objects.items() if s not in of_copied]
        check_objects(shown, as_they_are, pool_name=name)
        stored = [columns if schema in of_copied else schema for schema in objects]
        names = names_of(shown, view.key, view.names)
        check_columns(stored, names, pool_name=name)
        check_paths(names.columns(columns), map(names.stored, stored), pool_name=name)
        return _Plan(columns, names, rules, stored, copied, texts)

    def shows(self, view: View) -> bool:
        """Whether the present table shows the view, and its tag still keeps it."""
        before = self.before
        return (
            before is not None
            and (before.version, before.without, before.types) == (view.held.tip, self.without, self.types)
            and before.filters == shown_filters(view.settings)
            and before.fields == digest_of(view.state)
            and before.tag in (view.state.tags if view.branch == self.branch else self.pool.tags)
        )

    def publish(self) -> PublishResult:
        """Publishes the table by the module's steps 3 to 8, and returns the result."""
        tag = set_tag(self.pool, self.place, branch=self.branch)
        view = self.pool.at(tag)
        try:
            plan = self.plan(view)
        except InvalidInput:  # what was committed since the first look cannot be published
            delete_tag(self.pool, tag)
            raise
        try:
            return self._published(view, tag, plan)
        except InvalidInput:  # an object's footer says what the journal does not
            delete_tag(self.pool, tag)
            raise
        except Corrupt:
            winner = published_at(self.place)
            if winner is None or self.before is None or winner.number == self.before.number:
                raise
            delete_tag(self.pool, tag)  # a faster publisher deleted files of the table before
            return self.finished(winner, LOST)

    def _published(self, view: View, tag: str, plan: _Plan) -> PublishResult:
        from log_lake.publish import files as f
        from log_lake.publish import metadata as m

        place, ids = self.place, self.pool.context.ids
        rules_before = self._rules_before()
        with self._reading_table():
            before = None if self.before is None else m.parsed(self.before.text)
            stored = (*plan.stored, ORDER)
            layout = m.layout_of(before, plan.columns, plan.names, stored=stored, texts=plan.texts)
            at = partial(f.location_of_object, view)
            homes = view.config.homes
            was = f.files_before(before, layout, place, rules_before, at=at, homes=homes)
        copied = (r for rule in plan.rules.values() for r in rule.references if r.schema in plan.copied)
        check_begun_with(self.pool.context, view.config, (r.object for r in copied))
        describing = f.Describing(view, place, layout, was, ids.new, plan.columns, plan.copied)
        files = describing.described(plan.rules.values())
        if (
            before is not None
            and self.shows(view)
            and layout.schema.schema_id == before.current_schema_id
            and f.is_same(files, was)
        ):
            assert self.before is not None
            delete_tag(self.pool, tag)
            return self.finished(self.before, UNCHANGED)
        snapshot_id = _snapshot_id(ids.new())
        written, manifests, manifest_list = f.manifests_of(
            files, was, layout, place, before=before, snapshot_id=snapshot_id, id=ids.new()
        )
        version, transaction_id, time = self._newest(view)
        number = self.number + 1
        text = m.table_metadata(
            before,
            layout,
            location=place.location,
            earlier=place.location_of(f"metadata/v{number - 1}.metadata.json"),
            snapshot_id=snapshot_id,
            manifest_list=manifest_list,
            summary={
                VERSION: str(version),
                TRANSACTION: transaction_id,
                TIME: str(time),
                POOL: self.pool.config.id,
                BRANCH: self.branch,
                TAG: tag,
                **_totals(files),
            },
            properties={
                WITHOUT: json.dumps(list(self.without)),
                **({TYPES: self.types} if self.types != STRICT else {}),
                **({FILTERS: filters} if (filters := shown_filters(view.settings)) else {}),
                **({FIELDS: digest} if (digest := digest_of(view.state)) else {}),
            },
            now=self.pool.context.now(),
            shown=time,
        )
        for file in written:
            create_file(place, file.location, file.data)
        if not commit_metadata(place, number, text):
            delete_tag(self.pool, tag)
            winner = published_at(place)
            assert winner is not None
            return self.finished(winner, LOST)
        deletes = [one.deletes for one in files if one.deletes is not None]
        result = self.finished(
            described(place, number, text),
            PUBLISHED,
            added=sum(one.is_new for one in files),
            added_deletes=sum(one.has_new_deletes for one in files),
        )
        own = [one.data for one in files if one.data.file_path.startswith(place.location_of("data/"))]
        locations = [manifest_list, *(m.manifest_path for m in manifests)]
        locations += [one.file_path for one in (*deletes, *own)]
        delete_leftovers(place, number=number, locations=locations, grace=self.pool.settings["vacuum.grace"])
        return result

    def _reading_table(self) -> AbstractContextManager[None]:
        """Within the block, the present table is read; what pyiceberg cannot read raises Corrupt."""
        if self.before is None:
            return nullcontext()
        return decoding(f"{self.place.location}: table {self.before.number}", DAMAGED, advice=ADVICE)

    def finished(
        self, table: Published, outcome: str, *, added: int = 0, added_deletes: int = 0
    ) -> PublishResult:
        """Takes the steps 6 and 7, which a killed publisher may have left undone; returns the result."""
        point_hint(self.place)
        places = {self.place.location}
        if self.moved is not None and self.place.store is self.pool.store:
            # beside the objects, the writer of the metadata may write the pool; elsewhere it could name any table
            places.add(self.moved.location)
        delete_tags_before(self.pool, places, table.tag)
        log.info("%s: %s at %s: version %d", self.pool.name, outcome, table.location, table.version)
        return PublishResult(
            self.pool.name,
            self.branch,
            table.location,
            outcome,
            table.number,
            table.version,
            table.transaction_id,
            objects=table.objects,
            added=added,
            delete_files=table.delete_files,
            added_deletes=added_deletes,
            records=table.records,
            hidden=table.hidden,
        )

    def _rules_before(self) -> Mapping[str, ObjectRule]:
        """Returns the rules of the revision that the previous table shows; empty if its tag is gone."""
        if self.before is None:
            return {}
        try:
            view = self.pool.at(self.before.tag)
            is_same = self.before.filters == shown_filters(view.settings)
            return rules_of(view, view.lasting_filters if is_same else ())  # what ages hid then is not known
        except (NotFound, InvalidInput):  # the tag was deleted; filters hid what overlaps
            return {}

    def _newest(self, view: View) -> tuple[int, str, float]:
        """Returns the version, the id and the time of the view's newest transaction; the id is "" if it is
        purged."""
        version = view.held.tip
        for at, transaction in self.pool.log(branch=view.branch):  # bounded by what was committed since
            if at <= version:
                if at < version:
                    break
                return version, transaction.id, transaction.time / 1e6
        return version, "", view.state.time / 1e6


def _totals(files: Sequence[Described]) -> dict[str, str]:
    """Returns the totals of a table, as Iceberg names them."""
    data = [one.data for one in files]
    deletes = [one.deletes for one in files if one.deletes is not None]
    totals = {
        FILES: len(data),
        RECORDS: sum(file.record_count for file in data),
        "total-files-size": sum(file.file_size_in_bytes for file in (*data, *deletes)),
        DELETE_FILES: len(deletes),
        DELETED_RECORDS: sum(file.record_count for file in deletes),
        "total-equality-deletes": 0,
    }
    return {name: str(total) for name, total in totals.items()}


def _snapshot_id(id: str) -> int:
    """Returns a number of 63 bits, computed from an id of the lake."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:8], "big") >> 1


def set_tag(pool: Pool, place: Place, *, branch: str) -> str:
    """Tags the newest state of the branch, so that its objects stay while they are published; returns the
    tag's name."""
    name = f"published-{pool.context.ids.new()}"
    pool.tag(name, at=branch, reason=_reason(place.location))
    return name


def delete_tag(pool: Pool, name: str) -> None:
    """Deletes the tag, unless another publisher already has."""
    with contextlib.suppress(NotFound):
        pool.delete_tag(name)


def delete_tags_before(pool: Pool, places: Collection[str], name: str) -> None:
    """Deletes the tags of publications to these places that are older than the tag with this name."""
    tags, reasons = pool.tags, {*map(_reason, places)}
    if (own := tags.get(name)) is not None:
        for other, tag in tags.items():
            if tag.reason in reasons and tag.set_at < own.set_at:
                delete_tag(pool, other)


_REASON = "published at "


def is_publication(tag: Tag) -> bool:
    """Whether a publication has set the tag."""
    return tag.reason.startswith(_REASON)


def _reason(location: str) -> str:
    return f"{_REASON}{location}"
