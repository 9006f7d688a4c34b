"""The question to a person before an agent deletes, and the meaning of the answer; pure.

The task `approve` asks (`approval`), and `report` reads the answer.  A question says what will be done in which
pools, never which records an erasure names, because Airflow stores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lake_core.phrases import counted, printable

if TYPE_CHECKING:
    from log_lake.agents.work import Found, Work

MAX_LINES = 100
"""The most lines of a question: Airflow shows it in a page, and stores it."""

MAX_LINE = 500
"""The most characters of a line of the question.  The names of pool and branch, of up to 255 characters each, fit;
other parts are cut if they are longer."""

ANSWER = "answer"
"""The key of the XCom in which `approve` stores the answer: the chosen options, and who chose them."""

REJECT = "Reject"
"""The word of Airflow's ApprovalOperator for a refusal."""


def question(all_work: Sequence[Work], *, lake: str) -> str:
    """Returns the question in Markdown, with the lines of the work as a list; without a list the page would join
    them.

    `lake` is the name of the lake.  A line may repeat stored text, such as who began an erasure, so each line
    is shown as code and never as Markdown.
    """
    lines = [line for work in all_work for line in work.questions]
    shown = "\n".join("- `" + _one_line(line) + "`" for line in lines[:MAX_LINES])
    more = len(lines) - MAX_LINES
    rest = f"\n\nand {counted(more, 'more line')}, in the log of the task `find`." if more > 0 else ""
    where = f"In the lake `{lake}`.  What a vacuum or an erasure deletes does not come back."
    return f"{where}\n\n{shown}{rest}"


def _one_line(line: str) -> str:
    """Returns the line as Markdown shows it within backquotes: without any, in one line, and cut if it is
    long."""
    text = printable(line).replace("`", "'")
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


def put_off_by(answer: Mapping[str, Any] | None, all_work: Sequence[Work]) -> Found[Work]:
    """Returns the work as deferred if the answer is a refusal.  Returns it unchanged if it was approved, or if no
    person was asked."""
    from log_lake.agents.work import Found, PutOff

    if not answer or REJECT not in answer["chosen_options"]:
        return Found(all_work)
    why = f"{answer['by']} refused" if answer["by"] else "no approval came in time"
    return Found(put_off=[PutOff.of(work, why) for work in all_work])
