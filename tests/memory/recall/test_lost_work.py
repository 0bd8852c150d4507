"""What a compaction took away of work: which of the quoted passages are worth their room."""

from palimpsest.domain import Candidate, Memory
from palimpsest.memory.recall.lost_work import worthwhile


def kept(*texts: str) -> list[str]:
    found = [Candidate(Memory(at, at, "c", at, "user", text, 0.0, 0, len(text)), 1.0) for at, text in enumerate(texts)]
    return [one.memory.text for one in worthwhile(found)]


def test_what_a_client_wrote_in_the_place_of_a_user_is_not_quoted_and_what_it_only_wraps_is() -> None:
    typed = "<task>\nMake the parser accept empty lines.\n</task>"
    notice = "<system-reminder>\nThe file lib/a.py was changed by somebody.\n</system-reminder>"
    assert kept(typed, notice, "[Image: the parser and its lexer]") == [typed]
