from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from palimpsest.core.history.link_keys import inherited
from palimpsest.core.history.server_history import continued, held_head
from palimpsest.domain import Chat, Event, Fingerprint, Head, HeadFlag, Link, LinkKind, Role, Shape
from palimpsest.wire.responses import parse

RESULT = {"type": "function_call_output", "call_id": "c1", "output": "text"}


def head(turn: int, *fulls: int, conversation: str = "c", request_length: int | None = None, **more: Any) -> Head:
    """Its messages are named by their numbers, which are their fingerprints and occurrences, too."""
    length = len(fulls) - 1 if request_length is None else request_length
    return Head(conversation, turn, Role.MAIN, fulls, fulls, fulls, (0,) * len(fulls), request_length=length, **more)


def link(kind: LinkKind, turn: int, conversation: str = "c") -> Link:
    return Link(kind, 7, conversation, Role.MAIN, turn)


def asking(*items: Any, **fields: Any) -> Chat:
    return parse(orjson.dumps({"input": list(items), "previous_response_id": "resp_1"} | fields))


def prints(*fulls: int) -> tuple[Fingerprint, ...]:
    return tuple(Fingerprint(full, full) for full in fulls)


QUESTION = {"role": "user", "content": "And then?"}
ONE, TWO = head(1, 1, 2), head(2, 1, 2, 3, 4)


def test_the_answer_that_is_named_leads_to_its_own_turn():
    assert held_head([link(LinkKind.REPLY, 1)], [TWO, ONE]) is ONE


def test_an_answer_of_a_side_request_leads_to_what_it_was_asked_beside():
    assert held_head([link(LinkKind.REPLY, 9)], [ONE, TWO, head(8, 5, conversation="other")]) is TWO


def test_a_conversation_leads_to_its_newest_turn():
    assert held_head([link(LinkKind.CLIENT_ID, 1)], [ONE, TWO, head(8, 5, conversation="other")]) is TWO


def test_other_traces_lead_nowhere():
    assert held_head([link(LinkKind.CALL, 1), link(LinkKind.MESSAGE, 1)], [ONE]) is None


@pytest.mark.parametrize(("item", "event"), [(QUESTION, Event.APPEND), (RESULT, Event.TOOL)])
def test_all_that_the_provider_holds_stands_in_front(item: Any, event: Event):
    verdict = continued(asking(item), prints(9), TWO, [ONE, TWO])
    assert (verdict.event, verdict.head, verdict.held, verdict.kept) == (event, TWO, (0, 1, 2, 3), (-1,))
    assert verdict.fresh == (0,) and verdict.dropped == ()


def test_who_goes_on_from_an_older_answer_has_changed_his_mind():
    verdict = continued(asking(QUESTION), prints(9), ONE, [ONE, TWO])
    assert (verdict.event, verdict.head, verdict.held) == (Event.EDIT, ONE, (0, 1))


def test_the_same_behind_the_same_answer_is_a_retry():
    verdict = continued(asking(QUESTION), prints(3), ONE, [ONE, TWO])
    assert (verdict.event, verdict.head, verdict.kept, verdict.dropped) == (Event.RETRY, TWO, (2,), (3,))
    assert continued(asking(QUESTION), prints(9), TWO, [TWO], is_repeated=True).event is Event.RETRY


def test_branches_that_share_no_more_than_words_do_not_count():
    same_words = Head("c", 3, Role.MAIN, (1, 2, 3, 4), (1, 2, 3, 4), (11, 12, 13, 14), (0,) * 4)
    elsewhere = head(4, 1, 2, 3, 4, conversation="other")
    assert continued(asking(QUESTION), prints(9), ONE, [ONE, same_words, elsewhere]).event is Event.APPEND


def test_what_the_provider_compacted_on_its_way_to_an_answer_is_gone():
    flags = (0, 0, 0, HeadFlag.OURS | HeadFlag.COMPACTED)
    compacted = replace(head(2, 1, 2, 3, 4), flags=flags)
    verdict = continued(asking(QUESTION), prints(5), compacted, [compacted])
    assert (verdict.event, verdict.dropped, verdict.held) == (Event.SUMMARY, (0, 1, 2), (3,))
    onward = replace(head(3, 4, 5, 6), flags=(flags[-1], 0, 0))
    assert continued(asking(QUESTION), prints(5), compacted, [compacted, onward]).event is Event.RETRY
    assert continued(asking(QUESTION), prints(7), onward, [compacted, onward]).event is Event.APPEND


def test_an_answer_that_is_a_compaction_leaves_nothing_but_itself():
    links = [link(LinkKind.REPLY, 9), link(LinkKind.ECHO, 9)]
    verdict = continued(asking(QUESTION), prints(5), TWO, [TWO, head(3, 1, 2, 5, 6)], links)
    assert (verdict.event, verdict.dropped, verdict.held) == (Event.SUMMARY, (0, 1, 2, 3), ())
    aside = [link(LinkKind.REPLY, 9), replace(link(LinkKind.ECHO, 9), fingerprint=8)]
    assert continued(asking(QUESTION), prints(5), TWO, [TWO], aside).event is Event.APPEND


def test_instructions_that_are_not_repeated_still_stand():
    told = Shape(model="m", tool_names=("read",), instructions=(5,), opens=6)
    held = asking(QUESTION)
    assert inherited(held, Shape(model="m"), head(1, 1, shape=told)) == told
    assert inherited(held, Shape(instructions=(7,), opens=8), head(1, 1, shape=told)).instructions == (7,)
    assert inherited(held, Shape(tool_names=("look",)), head(1, 1, shape=told)).tool_names == ("look",)
    assert inherited(asking(QUESTION, previous_response_id=None), Shape(), head(1, 1, shape=told)) == Shape()
    assert inherited(held, Shape(), None) == Shape()
