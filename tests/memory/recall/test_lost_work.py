"""What a compaction took away of work: which of the quoted passages are worth their room."""

from palimpsest.core.archive.chunking import tags
from palimpsest.core.block.account_lines import room_beside
from palimpsest.domain import Candidate, Memory
from palimpsest.memory.recall.lost_work import worthwhile


def kept(*texts: str) -> list[str]:
    found = [
        Candidate(Memory(at, at, "c", at, "user", text, 0.0, 0, len(text), tags=tags(text)), 1.0)
        for at, text in zip(range(len(texts), 0, -1), texts, strict=True)
    ]
    return [one.memory.text for one in worthwhile(found)[0]]


def test_what_a_client_wrote_in_the_place_of_a_user_is_not_quoted_and_what_it_only_wraps_is() -> None:
    typed = "<task>\nMake the parser accept empty lines.\n</task>"
    notice = "<system-reminder>\nThe file lib/a.py was changed by somebody.\n</system-reminder>"
    assert kept(typed, notice, "[Image: the parser and its lexer]") == [typed]


def test_the_newest_comes_first_then_what_is_to_hold_then_tasks_and_then_questions() -> None:
    said = [
        "Do not touch store/engine, Mira is rewriting it.",
        "Is there dead code in wire/frame.py?",
        "Have a look at wire/encoding.py, something there seems slow.",
        "We'll go with a ring buffer for the queue.",
        "What does core/writing/topics.py do?",
    ]
    newest_first = said[::-1]
    assert kept(*newest_first) == [said[4], said[3], said[0], said[2], said[1]]


def test_of_tasks_in_the_same_words_two_are_quoted() -> None:
    assert len(kept(*(f"Next, look at shop/{name}{at}.py and tidy it." for at, name in enumerate("abcde")))) == 2


def test_what_is_to_hold_says_how_much_room_it_takes_beside_an_account() -> None:
    found = [Candidate(Memory(1, 1, "c", 1, "user", "Never push to main without asking me.", 0.0, 0, 37), 1.0)]
    _, chars = worthwhile(found)
    assert room_beside(chars) == room_beside(0) - len("user: Never push to main without asking me.\n")
