"""Statements of what things of a kind need or look like."""

import pytest
from palimpsest.core.work.standing import stands


@pytest.mark.parametrize(
    "said",
    [
        *("deploy/ needs Jana's sign-off before anything is changed", "Only Ines may run the backfill."),
        *("commit messages imperative, no prefix, max 60 chars", "changelog entries: past tense, one line"),
        *("All user-facing copy in British spelling.", "Timestamps in UTC, ISO 8601.", "use pnpm, not npm"),
        *("Integration tests live in tests/it, unit tests next to the code.", "Money is stored in cents, as integers."),
        *(
            "Every new endpoint needs an entry in openapi.yaml.",
            "All prices include VAT.",
            "we pin all versions exactly",
        ),
        *("the vendor folder is read-only for us", "we're on Python 3.9, so no match statements"),
    ],
)
def test_what_things_of_a_kind_need_or_look_like_stands_without_a_lasting_word(said: str) -> None:
    assert stands(said)


@pytest.mark.parametrize(
    "said",
    [
        *("add a health check to the api container", "fix the flaky test in tests/it/test_login.py first"),
        *(
            "The tests pass now, please commit.",
            "there are 3 failing tests in the billing module",
            "continue with step 3",
        ),
        *("I moved the config to settings.py this morning.", "Marta reviewed it yesterday and had two comments."),
        *("the port is 7431 now", "Clippy complains about an unused import.", "The images are too large, 3 MB each."),
        *("use a dict here, the list is too slow", "It should return 404 instead of 500 for unknown ids."),
        *("our deploy stays red until Ann is back", "page size 20", "we deploy in five minutes", "docs are stale"),
        *("Use the first option, not the second.", "every click returns an error", "Greetings from Rome, see you"),
        *("Jana needs the report from you.", "Timestamps in the log", "Users get a 500 on the profile page."),
        *("types are off", "Docker uses 4 GB of memory.", "Tim needs a review from Ann first.", "any idea has merit"),
    ],
)
def test_orders_for_once_and_reports_do_not_stand(said: str) -> None:
    assert not stands(said)
