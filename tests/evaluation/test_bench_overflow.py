"""Calls that are made again are counted, and those of them whose result a cut has taken away."""

from __future__ import annotations

from palimpsest.domain import Json
from palimpsest.evaluation.bench_overflow import NEWEST_STEPS, Measured, count_calls, shared
from palimpsest.wire.trimming import STUB


def called(id: str, path: str) -> Json:
    function = {"name": "read", "arguments": path}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": text}


SENT = [called("1", "a"), result("1", "long"), called("2", "b"), result("2", "long")]


def test_call_is_made_again_with_the_same_arguments_and_cut_with_its_result() -> None:
    told = Measured()
    count_calls(told, SENT, [SENT[0], result("1", STUB), *SENT[2:]], called("3", "a"))
    count_calls(told, SENT, SENT[2:], called("4", "a"))
    count_calls(told, SENT, SENT[2:], called("5", "b"))
    count_calls(told, SENT, SENT, called("6", "c"))
    assert (told.calls, told.again, told.again_cut) == (4, 3, 2)


def test_stub_or_emptied_call_among_the_newest_steps_invites_imitation() -> None:
    newest = [message for at in range(NEWEST_STEPS) for message in (called(f"n{at}", "x"), result(f"n{at}", "y"))]
    sent = [*SENT, *newest]
    old = [called("1", "{}"), result("1", STUB), *sent[2:]]
    told = Measured()
    count_calls(told, sent, old, {"role": "assistant", "content": "Done."})
    assert told.invitations == 0
    count_calls(
        told, sent, [*old[:-1], result(f"n{NEWEST_STEPS - 1}", STUB)], {"role": "assistant", "content": "Done."}
    )
    assert told.invitations == 1


def test_prefix_is_what_a_prompt_shares_with_the_one_before() -> None:
    assert shared([b"abcd", b"abxy", b"abxyz"]) == 6 / 9
