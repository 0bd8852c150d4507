import pytest
from palimpsest.evaluation.facts import Rarity, facts_of, holds, normalised


def kinds(text: str, role: str = "assistant") -> dict[str, str]:
    return {fact.text: fact.kind for fact in facts_of([(role, text)])}


@pytest.mark.parametrize(
    ("text", "fact", "kind"),
    [
        ("It stands in deploy/worker.toml now.", "deploy/worker.toml", "path"),
        ("It listens on port 7431.", "port 7431", "port"),
        ("Open localhost:8443 for that.", "localhost:8443", "port"),
        ("It dies with ECONNREFUSED.", "ECONNREFUSED", "error"),
        ("A LedgerMissingError comes.", "LedgerMissingError", "error"),
        ("Take v2.4.1 instead.", "v2.4.1", "version"),
        ("Set RETRY_LIMIT=5 there.", "RETRY_LIMIT=5", "config"),
        ('Write timeout = "30s" into it.', 'timeout = "30s', "config"),
        ("Run `git rebase --onto main topic` first.", "git rebase --onto main topic", "command"),
        ("```bash\nnpm run build:all\n```", "npm run build:all", "command"),
        ("I call split_ledger() for it.", "split_ledger", "function"),
        ("See https://example.org/a/b.", "https://example.org/a/b", "url"),
        ("We meet on March 14th, 2026 there.", "March 14th, 2026", "date"),
        ("It holds 350 GB at least.", "350 GB", "number"),
        ("she flew to Addis Ababa twice", "Addis Ababa", "name"),
        ("We'll use Postgres for the queue.", "We'll use Postgres for the queue", "decision"),
    ],
)
def test_facts_are_found_by_rule(text: str, fact: str, kind: str) -> None:
    assert kinds(text)[fact] == kind


def test_prose_without_specifics_holds_no_fact() -> None:
    assert kinds("Sure, I looked at that and it seems fine to me now. Line 12 and step 3 too.") == {}


def test_what_lies_inside_a_fact_is_not_another() -> None:
    assert list(kinds("See https://example.org/docs/setup_guide.md")) == ["https://example.org/docs/setup_guide.md"]


def test_what_tools_and_instructions_say_is_no_fact() -> None:
    assert kinds("port 7431", "tool") == kinds("port 7431", "system") == {}


def test_a_fact_is_counted_once_with_all_places() -> None:
    (fact,) = facts_of([("user", "port 7431"), ("assistant", "I see."), ("assistant", "Port 7431, noted.")])
    assert fact.messages == (0, 2)


def test_a_fact_is_recovered_in_another_form_but_not_inside_another_word() -> None:
    assert holds(normalised('Set  **RETRY_LIMIT="5"**\nthere'), normalised("RETRY_LIMIT=5"))
    assert not holds(normalised("it listens on port 74310"), "port 7431")
    assert not holds(normalised("transport 7431"), "port 7431")
    assert holds(normalised("transport 7431, port 7431"), "port 7431")


def test_what_many_conversations_say_is_not_rare() -> None:
    rarity = Rarity([[("user", "port 7431")], [("user", "Port 7431!")], [("user", "port 9102")]])
    common, rare = facts_of([("user", "port 7431 and port 9102")])
    assert rarity.is_rare(rare, 1)
    assert not rarity.is_rare(common, 1)
    assert rarity.is_rare(common, 2)
