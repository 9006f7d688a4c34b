"""lake fields: lists the fields of a pool; renames, drops or adds one."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say

_FORMS = {"rename": "rename OLD NEW", "drop": "drop FIELD", "add": "add FIELD TYPE"}
"""What each edit takes."""


def fields(args: Namespace) -> None:
    """List the fields, or edit one."""
    pool = open_lake(args).pool(args.pool)
    if not args.edit:
        rows = [vars(one) for one in pool.fields(args.at)]
        print_rows(rows, as_json=args.json, empty="no fields yet")
        return
    action, *names = args.edit
    form = _FORMS.get(action)
    if form is None or len(names) != len(form.split()) - 1:
        raise InvalidInput(f"fields: {' '.join(args.edit)!r}: write {' or '.join(_FORMS.values())}")
    if args.at != "main":
        raise InvalidInput("fields: --at belongs to the list; an edit changes the newest names")
    if action == "rename":
        done = pool.rename_field(old=names[0], new=names[1])
    elif action == "drop":
        done = pool.drop_field(names[0])
    else:
        done = pool.add_field(names[0], names[1])
    if args.json:
        print_json(vars(done))
    else:
        became = "added" if action == "add" else "dropped" if done.new is None else f"now {done.new}"
        what = f"field {done.field} is {became}"
        say(f"{args.pool}: {what}; version {done.version}, transaction {done.transaction_id}")
