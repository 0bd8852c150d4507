"""The work record over HTTP."""

from __future__ import annotations

from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal

from tests.core.work.test_account import call
from tests.edge.admin.asking import ACME, House
from tests.talking import Talk


async def test_the_work_of_a_conversation_is_made_from_its_archive(house: House, database: Database) -> None:
    talk = Talk(Journal(database), "key:acme", "c-work")
    said = await talk.say("Always run the linter.", call("Edit", file_path="src/a.py", old_string="a", new_string="b"))
    work = await house.get("conversations/c-work/work", ACME)
    assert (work["conversation"], work["messages"], work["read"], work["plan"]) == ("c-work", 2, 2, None)
    assert [(one["path"], one["act"], one["turn"]) for one in work["files"]] == [("src/a.py", "edited", said.turn.id)]
    assert [(one["text"], one["turn"]) for one in work["rules"]] == [("Always run the linter.", said.turn.id)]


async def test_a_conversation_of_nobody_or_of_somebody_else_has_no_record(house: House) -> None:
    for conversation in ("c-none", "c-9"):
        assert (await house.ask(f"/memory/v1/conversations/{conversation}/work", ACME))[0] == 404
