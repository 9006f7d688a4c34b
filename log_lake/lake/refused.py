"""Objects of a write that was refused because a scan for orphans has passed their ids.  Called by `Branch`.

The writer stood still for long, or its clock is behind, and no later scan looks at such names.  So the writer
itself puts its objects onto the list of the removed, and the vacuum deletes them.  The draft is refused for good,
and no version ever referred to them.
"""

from __future__ import annotations

import logging

from lake_core.context import Context
from lake_core.errors import LakeError
from lake_core.history import Draft, History
from lake_core.phrases import counted
from lake_core.records import AddObject, Discard

log = logging.getLogger(__name__)


def discard_refused(context: Context, history: History, refused: Draft) -> None:
    """List the new objects of a refused draft that are below the floor; if that fails, they stay on the store."""
    try:
        loaded = history.load_open()
        floor = loaded.state.removed.floor
        late = [a for a in refused.actions if isinstance(a, AddObject) and a.object < floor]
        if not late:
            return
        discard = Discard(tuple(a.object for a in late), tuple(a.size for a in late), never_read=True)
        message = f"discard {counted(len(late), 'object')} of a refused write"
        draft = Draft(context.ids.new(), "", loaded.version, context.author, (discard,), message=message)
        history.commit(draft)
    except LakeError as error:
        log.info("%s: objects of a refused write are not listed: %s", history.pool_name, error)
