"""Where work goes on."""

from palimpsest.core.work.places import MOST_ADDRESSES, addresses, branch


def test_the_branch_is_the_last_that_was_told() -> None:
    assert branch(["## main...origin/main", "git checkout -b fix/parser", "On branch fix/parser"]) == "fix/parser"
    assert branch(["## Heading", "* a list"]) == ""


def test_addresses_of_this_machine_come_newest_first_and_each_once() -> None:
    texts = ["Listening on port 8080", "curl http://localhost:8080/health", "The database is on port 5433."]
    assert addresses(texts, "") == ("port 5433", "http://localhost:8080/health")


def test_addresses_that_the_model_sees_are_not_told() -> None:
    assert addresses(["port 5433"], "postgres on 5433") == ()


def test_few_addresses_are_told() -> None:
    assert len(addresses([f"port {9000 + at}" for at in range(20)], "")) == MOST_ADDRESSES
