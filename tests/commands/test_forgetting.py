"""What `palimpsest forget` says of what it left: where it is, and what removes it."""

from __future__ import annotations

import pytest
from palimpsest.commands.forgetting import remainder


@pytest.mark.parametrize(
    ("where", "log_emptied", "said"),
    [
        (["replaced-1/palimpsest.db", "palimpsest.db"], False, "in replaced-1/palimpsest.db: delete"),
        (["palimpsest.db"], False, "end that, and run palimpsest vacuum"),
        ([], False, "end that, and run palimpsest vacuum"),
        (["palimpsest.db"], True, "still on the disk"),
    ],
)
def test_what_removes_the_rest_of_an_erasure_is_said(where: list[str], log_emptied: bool, said: str) -> None:
    assert said in remainder({"where": where, "log_emptied": log_emptied})
