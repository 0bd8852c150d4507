"""The probability that the rest of the work needs a name."""

from palimpsest.core.work.names import placed
from palimpsest.core.work.need import LostText, name_mentions, need, words


def likelier(name: str, other: str, *lost: LostText, seen: str = "", changed: frozenset[str] = frozenset()) -> bool:
    heads = ["src/changed.py" if "shown" in one.prose else "" for one in lost]
    found = name_mentions(lost, [placed(one.text) for one in lost], heads, frozenset(seen.split()))
    first, second = (need(each, found[each], len(lost), words([seen]), changed) for each in (name, other))
    return first > second


TOOL, MODEL = (lambda text: LostText(1, "tool", text)), (lambda text: LostText(1, "assistant", text))


def test_what_the_model_wrote_is_needed_rather_than_what_only_a_tool_showed() -> None:
    assert likelier("name_one", "name_two", MODEL("name_one"), TOOL("name_two"))


def test_what_was_written_lately_is_needed_rather_than_what_was_written_before() -> None:
    between = [TOOL("nothing")] * 8
    assert likelier("name_two", "name_one", MODEL("name_one"), *between, MODEL("name_two"))


def test_what_stood_beside_names_that_are_still_seen_is_needed_rather_than_what_did_not() -> None:
    lost = (TOOL("name_one"), TOOL("name_two with seen_now"))
    assert likelier("name_two", "name_one", *lost, seen="seen_now")


def test_names_of_files_that_were_changed_are_needed_rather_than_others() -> None:
    lost = (TOOL("shown name_one"), TOOL("name_two"))
    assert likelier("name_one", "name_two", *lost, changed=frozenset(["src/changed.py"]))


def test_numbers_by_which_a_log_counts_its_lines_are_no_names_and_few_or_scattered_ones_are() -> None:
    log = "\n".join(f"{number:05d} INFO worker_3 is up" for number in range(1, 40))
    scattered = " ".join(str(1000 * number) for number in range(1, 40))
    for text, expected in ((log, {"worker_3"}), (scattered, set(scattered.split())), ("8080 8081", {"8080", "8081"})):
        found = name_mentions([TOOL(text)], [placed(text)], [""], frozenset())
        assert found.keys() == expected
