from dataclasses import replace

import pytest
from palimpsest.core.block.pressure import pressure
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.recall.diagnosis import (
    NO_ASIDES,
    WARNED_MESSAGES,
    SeenBlocks,
    diagnose,
    lost_occurrences,
    newest_question,
    newly_lost,
)
from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.domain import (
    Block,
    BlockKind,
    Budget,
    Chat,
    Diagnosis,
    Event,
    Generosity,
    Head,
    HeadFlag,
    Lineage,
    Message,
    Note,
    Reach,
    Role,
    Speaker,
    StoredBlock,
)
from palimpsest.settings.policy import MemoryPolicy, Policy
from palimpsest.wire.message import read_message

from tests.core.driving import client_table

AGREED = "Yes, I'm fine with that. Please go ahead with the changes."
QUESTION = "Which port does the billing gateway listen on?"
SPEAKER = Speaker("t", user="ann")
RECALL, RESTORE = (DEMANDS[Generosity.BALANCED][kind] for kind in (BlockKind.RECALL, BlockKind.RESTORE))
U, A, T = HeadFlag.USER, HeadFlag.ASSISTANT | HeadFlag.OURS, HeadFlag.TOOL


def head(**changes: object) -> Head:
    base = Head("c", 1, Role.MAIN, [1, 2, 3, 4], [1, 2, 3, 4], [10, 11, 12, 13], [U, A, U, A], request_length=3)
    return replace(base, **changes)  # type: ignore[arg-type]


def chat(*said: tuple[str, str]) -> Chat:
    return Chat(tuple(Message(role, text, {}) for role, text in said), "m", b"", {})


def decide(
    request: Chat,
    lineage: Lineage,
    *,
    speaker: Speaker = SPEAKER,
    policy: Policy | None = None,
    prompt_tokens: int = 1000,
    replayed_tokens: int = 0,
    excluded: frozenset[int] = frozenset(),
    asides: Asides = NO_ASIDES,
) -> Diagnosis:
    policy = policy or Policy()
    fulls = [100 + at for at in range(len(request.history))]
    now = pressure(prompt_tokens, 100_000, 4000)
    return diagnose(request, fulls, speaker, lineage, "c", now, policy, SeenBlocks(replayed_tokens, excluded), asides)


COMPACTED = chat(("system", "s"), ("user", "Summary: we talked."), ("user", QUESTION))
SUMMARY = Lineage(Event.SUMMARY, Role.MAIN, head(), kept=(-1, -1), dropped=(0, 1, 2, 3), summary_at=(0,))


def test_a_compaction_restores_what_it_took_away() -> None:
    found = decide(COMPACTED, SUMMARY)
    assert (found.kind, found.budget, found.anchor) == (BlockKind.RESTORE, Budget(6000, 600, RESTORE.least_worth), 2)
    assert found.query is not None
    assert found.query.text == QUESTION
    assert found.query.lost == {10, 11, 12, 13}


@pytest.mark.parametrize(
    ("behind", "asked"),
    [
        ((QUESTION,), QUESTION),
        (("<command-name>/compact</command-name>", f"<feedback>{QUESTION}</feedback>"), QUESTION),
        (("<environment_details>\nmain.py\n</environment_details>",), None),
        ((), None),
    ],
    ids=["a question", "behind a command", "what a client adds", "nothing"],
)
def test_what_was_typed_behind_a_summary_in_its_message_is_asked(behind: tuple[str, ...], asked: str | None) -> None:
    parts = [
        {"type": "text", "text": text} for text in ("<system-reminder>x</system-reminder>", "We talked. " * 9, *behind)
    ]
    merged = read_message({"role": "user", "content": parts})
    found = decide(Chat((merged,), "m", b"", {}), replace(SUMMARY, kept=(-1,)))
    assert found.query is not None and (found.query.named is None) is (asked is not None)
    assert found.query.text == asked or ("We talked." in found.query.text and asked is None)


def test_the_newest_question_is_what_a_person_says_last() -> None:
    assert newest_question(COMPACTED) == QUESTION
    assert newest_question(chat(("user", QUESTION), ("assistant", "4711"), ("tool", "read"))) == ""
    assert newest_question(chat(("system", "s"))) == ""


def test_quotation_marks_around_all_of_a_question_are_no_part_of_it() -> None:
    for asked in (QUESTION, f'"{QUESTION}"', f"“{QUESTION}”\n"):
        request = chat(*((m.role, m.text) for m in COMPACTED.messages[:-1]), ("user", asked))
        found = decide(request, SUMMARY)
        assert found.query is not None and found.query.text == newest_question(request) == QUESTION


CLIENT_GOES_ON = "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."
ASIDES = client_table().asides


def test_what_the_client_itself_writes_behind_a_compaction_is_no_question() -> None:
    request = chat(("user", "Summary: we talked."), ("user", QUESTION), ("user", CLIENT_GOES_ON))
    lineage = replace(SUMMARY, kept=(-1, 2, -1))
    found = decide(request, lineage, asides=ASIDES)
    assert found.query is not None and found.kind is BlockKind.RESTORE
    assert found.query.named is not None and found.query.text.startswith(QUESTION)
    assert (found.anchor, newest_question(request, ASIDES)) == (2, "")
    alone = decide(chat(("user", "Summary: we talked."), ("user", CLIENT_GOES_ON)), lineage, asides=ASIDES)
    assert alone.query is not None and alone.ask_journal == ()  # the summary is what was said last


def test_a_client_that_goes_on_by_itself_gets_nothing_new() -> None:
    request = chat(("user", QUESTION), ("assistant", "4711"), ("user", CLIENT_GOES_ON))
    later = Lineage(Event.APPEND, Role.MAIN, head(lost=(10,)), kept=(2, 3, -1))
    assert decide(request, later, asides=ASIDES).note is Note.NO_QUESTION
    assert decide(request, later).kind is BlockKind.RECALL  # where nothing tells it from a person's words


def test_instructions_behind_a_question_do_not_take_the_word_from_it() -> None:
    told = chat(("system", "s"), ("user", QUESTION), ("system", "what you may use"))
    assert newest_question(told) == QUESTION
    found = decide(told, replace(SUMMARY, event=Event.APPEND, head=head(lost=(10,)), kept=(-1,), dropped=()))
    assert (found.kind, found.anchor) == (BlockKind.RECALL, 1)


def test_what_the_model_still_sees_is_named() -> None:
    found = decide(COMPACTED, SUMMARY)
    assert found.query is not None
    assert found.query.visible_fulls == {100, 101}


def test_words_that_lean_on_the_past_are_asked_together_with_it() -> None:
    request = chat(("user", "Summary: the billing gateway moved to Lisbon."), ("user", "ok, go on"))
    found = decide(request, SUMMARY)
    assert found.query is not None
    assert "billing gateway" in found.query.text


def test_a_question_that_is_new_is_what_a_restore_answers() -> None:
    found = decide(COMPACTED, SUMMARY)
    assert found.query is not None
    assert found.query.named is None


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ((("assistant", "b"), ("user", QUESTION)), (-1, 2, 3)),
        ((("assistant", "b"), ("tool", "E4127 in deploy.yaml")), (-1, 3, -1)),
        ((("user", "ok, go on"),), (-1, -1)),
        ((("user", "^ ?"),), (-1, -1)),
        ((), (-1,)),
    ],
    ids=["old question", "tool loop", "no words of its own", "signs alone", "summary alone"],
)
def test_where_nobody_asks_what_the_new_messages_name_is_known(
    said: tuple[tuple[str, str], ...], kept: tuple[int, ...]
) -> None:
    lineage = Lineage(Event.SUMMARY, Role.MAIN, head(), kept=kept, dropped=(0, 1), summary_at=(0,))
    found = decide(chat(("system", "s"), ("user", "Summary: worker.toml and its port."), *said), lineage)
    assert (found.kind, found.budget) == (BlockKind.RESTORE, Budget(6000, 1000))
    assert found.query is not None
    assert found.query.named is not None
    assert "worker.toml" in found.query.named
    assert ("deploy.yaml" in found.query.named) == any("deploy.yaml" in text for _, text in said)


@pytest.mark.parametrize("text", ["ok, go on", "Thanks!", "Gut, machen wir weiter.", "谢谢", "why is that?", AGREED])
def test_small_talk_needs_nothing(text: str) -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, head(lost=(7, 8)), kept=(0, -1))
    found = decide(chat(("user", "a"), ("user", text)), lineage)
    assert (found.query, found.note) == (None, Note.NOTHING_RELEVANT)


@pytest.mark.parametrize(
    ("text", "restores"), [("Thanks!", False), ("OK, let us go on.", True), ("Weiter bitte.", True), (AGREED, True)]
)
def test_after_a_compaction_only_who_goes_on_gets_back_what_was_lost(text: str, restores: bool) -> None:
    found = decide(chat(("system", "s"), ("user", "Summary: we talked."), ("user", text)), SUMMARY)
    assert (found.query is not None and found.query.named is not None) is restores
    assert found.query is None or not found.query.with_prose


@pytest.mark.parametrize(("text", "restores"), [("yes", True), ("why is that?", False)])
def test_agreeing_to_what_was_proposed_is_going_on_and_asking_back_is_not(text: str, restores: bool) -> None:
    asked = chat(("user", "Summary."), ("assistant", "Shall I write the tests?"), ("user", text))
    found = decide(asked, replace(SUMMARY, kept=(-1, -1, -1)))
    assert (found.query is not None and found.query.named is not None) is restores


def test_lasting_wishes_come_with_what_a_compaction_took_away_and_not_later() -> None:
    restored = decide(COMPACTED, SUMMARY).query
    later = decide(COMPACTED, replace(SUMMARY, event=Event.APPEND, head=head(lost=(10,)), kept=(-1,), dropped=())).query
    assert restored is not None and later is not None
    assert (restored.wishes, later.wishes) == (RESTORE.wishes, 0)


@pytest.mark.parametrize("generosity", Generosity)
def test_generosity_says_how_sure_memory_must_be(generosity: Generosity) -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, head(lost=(7, 8)), kept=(0, -1))
    policy = Policy.model_validate({"memory": {"generosity": generosity}})
    found = decide(chat(("user", "a"), ("user", QUESTION)), lineage, policy=policy)
    demand = DEMANDS[generosity][BlockKind.RECALL]
    assert found.query is not None and found.budget is not None
    assert (found.query.least_help, found.budget.least_worth) == (demand.least_help, demand.least_worth)


@pytest.mark.parametrize("event", [Event.APPEND, Event.TOOL, Event.START])
def test_a_conversation_that_lost_nothing_is_calm(event: Event) -> None:
    lineage = Lineage(event, Role.MAIN, head() if event is not Event.START else None, kept=(0, -1))
    assert decide(chat(("user", "a"), ("user", QUESTION)), lineage, speaker=Speaker("t")).note is Note.CALM


def test_a_later_human_message_recalls_what_was_lost() -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, head(lost=(7, 8)), kept=(0, 1, 2, 3, -1))
    request = chat(("user", "a"), ("assistant", "b" * 6000), ("user", "c"), ("assistant", "d"), ("user", QUESTION))
    found = decide(request, lineage)
    assert (found.kind, found.budget) == (BlockKind.RECALL, Budget(3000, 600, RECALL.least_worth))
    assert found.query is not None
    assert found.query.lost == {7, 8}


def test_the_beginning_of_an_answer_does_not_take_the_word_from_its_question() -> None:
    begun = chat(("user", "a"), ("assistant", "b"), ("user", QUESTION), ("assistant", "It is"))
    found = decide(begun, Lineage(Event.APPEND, Role.MAIN, head(lost=(7, 8)), kept=(0, 1, -1, -1)))
    assert (found.kind, found.anchor, newest_question(begun)) == (BlockKind.RECALL, 2, QUESTION)


def test_a_recall_block_is_shorter_where_the_client_itself_sends_little() -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, head(lost=(7, 8)), kept=(0, 1, 2, 3, -1))
    texts = ("a" * 399, "b", "c", "d", QUESTION)
    request = chat(*zip(("user", "assistant", "user", "assistant", "user"), texts, strict=True))
    assert decide(request, lineage).budget == Budget(1500 + sum(map(len, texts)) // 4, 600, RECALL.least_worth)


def test_inside_a_tool_loop_nothing_new_is_said() -> None:
    lineage = Lineage(Event.TOOL, Role.MAIN, head(lost=(7,)), kept=(0, 1, 2, 3, -1))
    request = chat(("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("tool", "result"))
    assert decide(request, lineage).note is Note.TOOL_LOOP


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ([("user", "")], Note.NO_QUESTION),
        ([("user", "a"), ("assistant", "b"), ("user", "")], Note.NO_QUESTION),
        ([("user", "a"), ("assistant", "b"), ("assistant", "c")], Note.NO_QUESTION),
        ([("system", "a")], Note.NO_QUESTION),
        ([("user", "a"), ("tool", "b"), ("system", "c")], Note.TOOL_LOOP),
        ([("user", "a"), ("tool", "b"), ("user", CLIENT_GOES_ON)], Note.TOOL_LOOP),
    ],
)
def test_a_request_in_which_nobody_speaks_at_the_end_is_told_from_a_tool_loop(
    said: list[tuple[str, str]], note: Note
) -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, head(lost=(7,)), kept=(-1,) * len(said))
    assert decide(chat(*said), lineage, asides=ASIDES).note is note


@pytest.mark.parametrize("event", [Event.SUMMARY, Event.TRUNCATE])
def test_a_compaction_inside_a_tool_loop_restores_once(event: Event) -> None:
    lineage = Lineage(event, Role.MAIN, head(), kept=(-1, 3, -1), dropped=(0, 1, 2), summary_at=(0,))
    found = decide(chat(("user", "Summary."), ("assistant", "call"), ("tool", "ECONNREFUSED")), lineage)
    assert (found.kind, found.anchor) == (BlockKind.RESTORE, 0)
    assert found.query is not None
    assert "ECONNREFUSED" in found.query.text


def test_in_front_of_what_the_provider_has_compacted_nothing_is_said() -> None:
    compacted = Message("assistant", "", {}, opaque=("sha256:1",))
    asked = Chat((compacted, Message("tool", "read", {})), "m", b"", {})
    assert decide(asked, SUMMARY).note is Note.TOOL_LOOP
    assert decide(replace(asked, messages=(*asked.messages, Message("user", QUESTION, {}))), SUMMARY).anchor == 2


def test_between_a_call_that_the_provider_holds_and_its_result_nothing_is_said() -> None:
    results = Chat((Message("tool", "read", {}),), "m", b"", {}, held=True)
    assert decide(results, SUMMARY).note is Note.TOOL_LOOP


def test_what_the_provider_holds_is_visible() -> None:
    lineage = Lineage(Event.APPEND, Role.MAIN, head(lost=(7,)), kept=(-1,), held=(1, 2))
    found = decide(replace(chat(("user", QUESTION)), held=True), lineage)
    assert found.query is not None
    assert {lineage.head.fulls[1], lineage.head.fulls[2]} < found.query.visible_fulls  # type: ignore[union-attr]


def test_a_human_message_that_is_gone_is_asked_of_the_journal() -> None:
    lineage = Lineage(Event.TRUNCATE, Role.MAIN, head(), kept=(3, -1), dropped=(0, 1, 2))
    found = decide(chat(("assistant", "call"), ("tool", "result")), lineage)
    assert (found.ask_journal, found.anchor) == ((12,), -1)


def test_without_an_earlier_request_there_is_no_human_message_to_ask_for() -> None:
    lineage = Lineage(Event.START, Role.MAIN, None, kept=(-1, -1))
    assert decide(chat(("assistant", "call"), ("tool", "result")), lineage).ask_journal == ()


def test_cleared_tool_results_restore_nothing_by_themselves() -> None:
    lineage = Lineage(Event.CLEAR, Role.MAIN, head(flags=[U, A, T, A]), kept=(0, 1, -1, 3, -1), dropped=(2,))
    request = chat(("user", "a"), ("assistant", "b"), ("tool", "[cleared]"), ("assistant", "d"), ("tool", "new"))
    assert decide(request, lineage).note is Note.TOOL_LOOP


def test_a_full_sliding_window_recalls_and_restores_no_more() -> None:
    lineage = Lineage(Event.TRUNCATE, Role.MAIN, head(), kept=(2, 3, -1), dropped=(0, 1), window_full=True)
    found = decide(chat(("user", "c"), ("assistant", "d"), ("user", QUESTION)), lineage)
    assert found.kind is BlockKind.RECALL


@pytest.mark.parametrize(("since", "is_held"), [(WARNED_MESSAGES, True), (WARNED_MESSAGES + 1, False)])
def test_a_full_window_gets_no_precaution_that_a_block_told_within_so_many_messages(since: int, is_held: bool) -> None:
    told = StoredBlock(10, Block("x", BlockKind.RECALL, (3,)))
    before = replace(head(lost=tuple(range(9, 10 + since - 4))), blocks=(told,))
    before = replace(before, occurrences=range(10 + since - 4, 10 + since))
    lineage = Lineage(Event.TRUNCATE, Role.MAIN, before, kept=(2, 3, -1), dropped=(0, 1), window_full=True)
    said = chat(("user", "c"), ("assistant", "d"), ("user", QUESTION))
    found = decide(said, lineage).query
    assert found is not None and found.told is None and found.warned == ({3} if is_held else set())
    roomy = decide(said, replace(lineage, window_full=False)).query
    assert roomy is not None and roomy.warned == set(), "there, what is visible is left out already"


def test_what_an_edit_dropped_is_not_lost() -> None:
    lineage = Lineage(Event.EDIT, Role.MAIN, head(lost=(7,)), kept=(0, 1, -1), dropped=(2, 3))
    assert newly_lost(lineage) == ()
    assert lost_occurrences(lineage) == {7}


@pytest.mark.parametrize("kept", [(0, -1), (0, 2)], ids=["another question", "reworded behind its beginning"])
def test_an_edit_of_the_question_that_a_compaction_came_with_gets_what_that_got(kept: tuple[int, ...]) -> None:
    first = decide(COMPACTED, SUMMARY)
    before = head(lost=(7, 8), flags=[HeadFlag.SUMMARY, A, U, A])
    changed = tuple(at for at, index in enumerate(kept) if index == 2)
    edit = Lineage(Event.EDIT, Role.MAIN, before, kept, changed, dropped=(1, 3), restores_again=True)
    found = decide(COMPACTED, edit)
    assert (found.kind, found.budget, found.anchor) == (first.kind, first.budget, first.anchor)
    assert found.query is not None and first.query is not None
    assert replace(found.query, lost=first.query.lost) == first.query
    assert found.query.lost == {7, 8}, "and nothing of what was edited away"
    assert decide(COMPACTED, edit, replayed_tokens=4000).sheds


def test_a_message_cut_in_its_middle_is_lost_with_the_rest() -> None:
    lineage = Lineage(Event.TRUNCATE, Role.MAIN, head(), kept=(1, 2, 3, -1), changed=(0,), dropped=(0,))
    assert newly_lost(lineage) == (10, 11)


def test_side_requests_and_twins_get_nothing() -> None:
    assert decide(COMPACTED, replace(SUMMARY, role=Role.SIDE)).note is Note.SIDE_REQUEST
    assert decide(COMPACTED, replace(SUMMARY, ambiguous=True)).note is Note.AMBIGUOUS


def test_a_full_window_gets_no_recall_but_a_restore() -> None:
    lost = Lineage(Event.APPEND, Role.MAIN, head(lost=(7,)), kept=(0, -1))
    asked = chat(("user", "a"), ("user", QUESTION))
    assert decide(asked, lost, prompt_tokens=80_000).note is Note.PRESSURE
    assert decide(COMPACTED, SUMMARY, prompt_tokens=80_000).kind is BlockKind.RESTORE
    assert decide(COMPACTED, SUMMARY, prompt_tokens=96_000).note is Note.WINDOW_FULL


def test_at_the_cap_only_a_restore_is_new_and_sheds_the_old_blocks() -> None:
    lost = Lineage(Event.APPEND, Role.MAIN, head(lost=(7,)), kept=(0, -1))
    asked = chat(("user", "a"), ("user", QUESTION))
    assert decide(asked, lost, replayed_tokens=4000).note is Note.REPLAY_CAP
    shed = decide(COMPACTED, SUMMARY, replayed_tokens=4000, excluded=frozenset({10}))
    assert shed.sheds
    assert shed.query is not None
    assert shed.query.excluded == frozenset()


def test_what_replayed_blocks_carry_does_not_come_again() -> None:
    found = decide(COMPACTED, SUMMARY, replayed_tokens=100, excluded=frozenset({10}))
    assert found.query is not None
    assert found.query.excluded == {10}


def test_a_retry_says_nothing_new() -> None:
    lineage = Lineage(Event.RETRY, Role.MAIN, head(lost=(7,)), kept=(0, 1, 2))
    assert decide(chat(("user", "a"), ("assistant", "b"), ("user", QUESTION)), lineage).note is Note.CALM


def test_the_reach_of_a_user_needs_a_user() -> None:
    policy = Policy(memory=MemoryPolicy(reach=Reach.USER))
    start = Lineage(Event.START, Role.MAIN, kept=(-1,))
    asked = chat(("user", QUESTION))
    assert decide(asked, start, speaker=Speaker("t"), policy=policy).note is Note.CALM
    found = decide(asked, start, policy=policy)
    assert found.kind is BlockKind.RECALL
    assert found.query is not None
    assert (found.query.reach, found.query.user) == (Reach.USER, "ann")
