"""A request as a diff against the head that it continues."""

from __future__ import annotations

from dataclasses import replace

from palimpsest.core.archive.turns import bare_turn, turn_of, unsent_turn
from palimpsest.core.conversation import Rules
from palimpsest.core.decision import Decision
from palimpsest.core.reading import Reading
from palimpsest.domain import (
    Block,
    BlockKind,
    Chat,
    Diagnosis,
    Event,
    Fingerprint,
    Head,
    HeadFlag,
    Lineage,
    LinkKind,
    Message,
    Note,
    Pressure,
    Role,
    Shape,
    Speaker,
    Tier,
    Turn,
)

from tests.core.driving import prose, rules_of

HEAD = Head("c", 7, Role.MAIN, [10, 11, 12], [10, 11, 12], [100, 101, 102], [1, 2, 1], compactions=1, lost=(50,))
BLOCK = Block("<block>", BlockKind.RESTORE, (1, 2), tokens=9)
CALM = Pressure(40, 1000, 100, 0.04, Tier.CALM)


def decision(*roles: str, lineage: Lineage, **more: object) -> Decision:
    messages = tuple(Message(role, f"{role} {at} {prose(20, at)}", {}) for at, role in enumerate(roles))
    reading = Reading(Chat(messages, "m", b"", {}), tuple(Fingerprint(at, at) for at in range(len(roles))), 40)
    diagnosis = Diagnosis(Speaker("t", client_ids=("id:1",)), "c", lineage, CALM)
    return replace(Decision(reading, Shape(), diagnosis, 40), **more)  # type: ignore[arg-type]


def turn(decided: Decision, rules: Rules | None = None) -> Turn:
    return turn_of(decided, rules or rules_of(), id="t-1", upstream="u", created_at=5.0)


def test_what_the_head_holds_is_kept_and_the_rest_is_new() -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, HEAD, kept=(0, 1, 2, -1), changed=(2,))
    made = turn(decision("system", "user", "assistant", "user", "user", lineage=lineage))
    assert made.kept == ((1, 100), (2, 101)) and [new.position for new in made.new] == [0, 3, 4]
    assert (made.parent_turn, made.last_full, made.compactions, made.lost) == (7, 4, 1, ())


def test_messages_stand_behind_those_that_the_provider_holds() -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, HEAD, kept=(-1,), held=(0, 1, 2))
    made = turn(decision("user", lineage=lineage, block=BLOCK, anchor=0))
    assert made.kept == ((0, 100), (1, 101), (2, 102)) and [new.position for new in made.new] == [3]
    assert (made.anchor, made.lost, made.tokens) == (3, (50,), 49)
    nothing_new = turn(decision(lineage=replace(lineage, kept=())))
    assert nothing_new.last_full == 12


def test_a_request_for_a_compaction_brings_only_what_the_conversation_does_not_hold() -> None:
    lineage = Lineage(Event.START, Role.SIDE, kept=(-1,) * 3, parent="c", repeats=(HEAD, (1, -1)))
    made = turn(decision("user", "user", "assistant", lineage=lineage))
    assert made.kept == ((0, 101),) and [new.position for new in made.new] == [1, 2]
    assert (made.parent_turn, made.lost, made.compactions) == (7, (), 0)


def test_compaction_counts_what_it_took_away_and_marks_its_summary() -> None:
    lineage = Lineage(Event.SUMMARY, Role.MAIN, HEAD, kept=(-1, 2), dropped=(0, 1), summary_at=(0,))
    made = turn(decision("system", "user", "user", lineage=lineage))
    assert (made.compactions, made.lost) == (2, (100, 101))
    assert [bool(new.flags & HeadFlag.SUMMARY) for new in made.new] == [False, True]


def test_a_summary_with_words_of_a_person_behind_it_is_marked() -> None:
    lineage = Lineage(Event.SUMMARY, Role.MAIN, HEAD, kept=(-1, 2), dropped=(0, 1), summary_at=(0,))
    decided = decision("user", "user", lineage=lineage)
    for behind, is_typed in (("Go on with the parser.", True), ("<system-reminder>Be brief.</system-reminder>", False)):
        parts = [{"type": "text", "text": text} for text in ("We spoke of parsers. " * 20, behind)]
        summary = Message("user", "", {"role": "user", "content": parts})
        chat = replace(decided.reading.chat, messages=(summary, decided.reading.chat.messages[1]))
        made = turn(replace(decided, reading=replace(decided.reading, chat=chat)))
        assert [bool(new.flags & HeadFlag.TYPED) for new in made.new] == [is_typed]


def test_what_the_client_writes_in_the_users_role_is_marked() -> None:
    decided = decision("user", "user", lineage=Lineage(Event.START, Role.MAIN, kept=(-1, -1)))
    told = Message("user", "<command-name>/compact</command-name>\n<command-args></command-args>", {})
    chat = replace(decided.reading.chat, messages=(decided.reading.chat.messages[0], told))
    made = turn(replace(decided, reading=replace(decided.reading, chat=chat)))
    assert [bool(new.flags & HeadFlag.ASIDE) for new in made.new] == [False, True]


def test_side_request_leaves_no_links() -> None:
    beside = Lineage(Event.START, Role.SIDE, kept=(-1,), parent="c")
    assert turn(decision("user", lineage=beside)).links == ()
    main = Lineage(Event.START, Role.MAIN, kept=(-1,))
    assert {kind for kind, _ in turn(decision("user", lineage=main)).links} >= {LinkKind.CLIENT_ID, LinkKind.MESSAGE}


def test_turn_that_went_without_its_block_carries_none() -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, HEAD, kept=(0, 1, 2, -1))
    decided = decision("user", "assistant", "user", "user", lineage=lineage, block=BLOCK, anchor=3, drops_blocks=True)
    made, bare = turn(decided), decided.bare(Note.DEADLINE, 1000)
    assert (made.block, made.tokens, made.replaces_blocks) == (BLOCK, 49, True)
    unsent, again = unsent_turn(made, bare), bare_turn(made, bare)
    assert (unsent.block, unsent.tokens, unsent.anchor, unsent.replaces_blocks) == (None, 40, -1, False)
    assert (unsent.is_bare, again.is_bare, again.block) == (False, True, None)
    assert unsent.explain["note"] == "deadline"


def test_texts_of_a_turn_are_counted_where_it_is_made_and_not_where_it_is_taken() -> None:
    decided = decision("user", "user", lineage=Lineage(Event.APPEND, Role.MAIN, HEAD, kept=(0, -1)))
    chat = decided.reading.chat
    messages = tuple(replace(message, raw={"content": "four"}) for message in chat.messages)
    reading = replace(decided.reading, chat=replace(chat, messages=messages))
    assert turn(replace(decided, reading=reading)).chars == len("four")
