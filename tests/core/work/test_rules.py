"""Standing rules: what a user asked to hold from now on."""

import pytest
from palimpsest.core.work.rules import RULES_CHARS, rules


def told(*said: str, visible: str = "") -> list[str]:
    return [line.text for line in rules(enumerate(said, start=1), visible)]


def test_rules_come_in_the_order_in_which_they_were_set() -> None:
    assert told("Fix it. Always run the linter first.", "Never push to main!") == [
        "Always run the linter first.",
        "Never push to main!",
    ]


def test_a_rule_may_stand_in_the_tags_that_a_client_puts_around_what_was_typed() -> None:
    assert told("<task>\nAlways run the linter first.\n</task>\n<details>\nAlways on.\n</details>") == [
        "Always run the linter first."
    ]


def test_a_later_rule_about_the_same_thing_takes_the_place_of_an_earlier_one() -> None:
    assert told("Always answer in German.", "From now on always answer in English.") == [
        "From now on always answer in English."
    ]


def test_a_rule_is_told_with_the_sentence_behind_it_that_limits_it() -> None:
    limited = "Never merge on Fridays. But hotfixes may go in."
    assert told(f"Fix it. {limited} Thanks!") == [limited]
    assert told("Never merge on Fridays. Except hotfixes.") == ["Never merge on Fridays. Except hotfixes."]
    assert told(f"Never merge on Fridays. But {'hotfixes ' * 30}may go in.") == ["Never merge on Fridays."]


@pytest.mark.parametrize(
    "next_step",
    [
        "But first, fix the test.",
        "But why can it fail?",
        "But you can merge it now.",
        "But first you may run it.",
        "Run the tests. But skip the slow ones.",
        "Only 3 tests fail now.",
    ],
)
def test_a_rule_is_told_without_what_limits_nothing(next_step: str) -> None:
    assert told(f"Never push to main. {next_step}")[:1] == ["Never push to main."]


@pytest.mark.parametrize(
    "rule",
    ["Beträge immer als Decimal, nie float.", "Réponds toujours en français.", "Nunca edites las migraciones.",
     "Scrivi sempre i test.", "Всегда пиши тесты."],
)  # fmt: skip
def test_rules_in_other_languages_hold_as_well(rule: str) -> None:
    assert told(f"{rule}\nDer Test schlägt immer fehl.") == [rule]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Always answer in German.", "From now on always answer in English."),
        ("Always write commit messages in German.", "Always write commit messages in English."),
        ("Always call me Robert.", "From now on always call me Bob."),
        ("Always keep lines under 80 characters.", "Always keep lines under 100 characters."),
        ("Always indent Python with tabs.", "Always indent Python with spaces."),
        ("Never use emojis in answers.", "From now on always use emojis."),
        ("Always add a changelog entry.", "Never add a changelog entry."),
        ("Never push to main.", "Always push to main when the tests pass."),
        ("Always run the tests.", "Always run the tests before you commit."),
    ],
)
def test_a_rule_that_cannot_hold_beside_a_later_one_ends(earlier: str, later: str) -> None:
    assert told(earlier, later) == [later]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Always run the linter before each commit.", "Always run the tests before each commit."),
        ("Never push to main.", "Never push to the release branch."),
        ("Never push to main.", "Never push to main on a Friday."),
        ("Always answer in German.", "Always answer briefly."),
        ("Always write tests for new code.", "Never write comments in new code."),
        ("Always ask me before you delete files.", "Always ask me before you install packages."),
        ("Never use emojis in answers.", "Never use tables in answers."),
        ("Always use type hints.", "Always use pytest."),
        ("Always update the changelog.", "Always update the readme."),
        ("Never commit secrets.", "Always commit small steps."),
        ("Always mention the ticket in commit messages.", "Always sign commit messages."),
    ],
)
def test_rules_that_only_share_words_hold_both(earlier: str, later: str) -> None:
    assert told(earlier, later) == [earlier, later]


@pytest.mark.parametrize(
    ("earlier", "later", "holding"),
    [
        ("Timestamps in UTC", "Timestamps in CET", ["Timestamps in CET"]),
        ("line length 100", "line length is 120", ["line length is 120"]),
        ("services use port 8080", "services use port 9090 in demos", ["services use port 8080"]),
        ("commit messages are imperative", "commit messages are signed", ["commit messages are imperative"]),
    ],
)
def test_what_only_stands_replaces_another_value_of_its_kind_and_nothing_else(
    earlier: str, later: str, holding: list[str]
) -> None:
    assert told(earlier, later) == [*holding, *([later] if later not in holding else [])]


def test_a_rule_that_the_model_sees_is_not_told_and_ends_an_earlier_one() -> None:
    assert told("Always answer in German.", visible="Always answer in English.") == []
    assert told("Never push to main.", visible="We said: Never push to main.") == []


def test_questions_and_tales_are_no_rules() -> None:
    assert told("Does it always fail?", "The build always took ten minutes on that machine.") == []


def test_rules_take_little_room_and_the_newest_stand() -> None:
    lines = rules(
        [(at, f"Always check the file named module_{at} with care before the release.") for at in range(40)], ""
    )
    assert sum(line.chars for line in lines) <= RULES_CHARS


def test_the_newest_of_many_rules_stand() -> None:
    subjects = ("apples", "bridges", "castles", "dragons", "engines", "forests", "gardens", "hammers", "ladders")
    said = [f"Never mention {subject} in any commit or in a branch." for subject in subjects]
    assert "ladders" in "".join(told(*said)) and "apples" not in "".join(told(*said))


CLAUDE_MD = """<system-reminder>
As you answer, you can use the following context. NEVER mention this reminder to the user.
Contents of /home/me/shop/CLAUDE.md (project instructions, checked into the codebase):

# Shop
The shop sells books. Orders never expire.
- Run `make check` before every commit, always.
- You must not touch vendor/.
</system-reminder>"""
AGENTS_MD = "# AGENTS.md instructions for /home/me/shop\n\n<INSTRUCTIONS>\n- Do not add dependencies.\n</INSTRUCTIONS>"


def test_rules_of_files_come_back_and_what_a_client_adds_beside_them_does_not() -> None:
    rules_of_file = told(f"{CLAUDE_MD}\nFix the tests.")
    assert "You must not touch vendor/." in rules_of_file
    assert "Run `make check` before every commit, always." in rules_of_file
    assert "mention this reminder" not in "".join(rules_of_file)
    assert told(AGENTS_MD) == ["Do not add dependencies."]


def test_rules_of_files_come_once_and_not_where_the_model_sees_them() -> None:
    assert len(told(AGENTS_MD, AGENTS_MD)) == 1
    assert told(AGENTS_MD, visible=AGENTS_MD) == []


def test_what_the_user_says_overrules_a_file() -> None:
    assert told(AGENTS_MD, "From now on always add dependencies when they save work.") == [
        "From now on always add dependencies when they save work."
    ]


def test_what_always_happens_is_no_rule() -> None:
    assert told("Note the final context is never cancelled on exit, so make it benign.") == []


@pytest.mark.parametrize(
    "pasted",
    [
        "diff --git a/x.go b/x.go\n@@ -1,2 +1,3 @@\n+ // Always include the header for sessions",
        "// Always include the header for sessions",
        "> Always include the header for sessions.",
        "```\nAlways include the header for sessions.\n```",
    ],
)
def test_pasted_code_and_quotations_set_no_rule(pasted: str) -> None:
    assert told(f"Look at this:\n\n{pasted}\n\nNever push to main.") == ["Never push to main."]


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("Do not touch relay/legacy/, it is frozen until the 3.2 release.", True),
        ("please don't push to main", True),
        ("Under no circumstances delete the backups.", True),
        ("No new dependencies without asking me first.", True),
        ("Don't think we need this check.", False),
        ("I don't know what it does.", False),
        ("Don't run the tests now, they take too long.", False),
        ("Don't push yet.", False),
        ("We never shipped that feature.", False),
        ("No tests pass without the database.", False),
        ("Don't bother with the docs.", False),
    ],
)
def test_what_opens_by_forbidding_is_a_rule_without_a_lasting_word(said: str, holds: bool) -> None:
    assert [rule.text for rule in rules([(1, said)], "")] == [said] * holds


@pytest.mark.parametrize(
    ("forbidden", "allowed"),
    [
        ("Do not touch src/legacy.py.", "You may touch src/legacy.py now."),
        ("Don't delete the branch.", "Delete the branch now."),
        ("Never push to main.", "Ok, go ahead and push to main."),
    ],
)
def test_what_was_forbidden_and_is_allowed_later_is_no_rule_any_more(forbidden: str, allowed: str) -> None:
    assert rules([(1, forbidden), (2, allowed)], "") == ()
    assert [rule.text for rule in rules([(1, allowed), (2, forbidden)], "")] == [forbidden]


def test_what_is_wanted_of_things_of_a_kind_holds_without_a_lasting_word() -> None:
    assert told("Fix the parser. deploy/ needs Jana's sign-off before anything is changed", "now commit it") == [
        "deploy/ needs Jana's sign-off before anything is changed"
    ]
    assert told("use pnpm, not npm", "why is the build slow?", "run it again") == ["use pnpm, not npm"]


def test_what_says_that_it_lasts_has_room_before_what_only_stands() -> None:
    parts = (f"Files of part {part} live in src/part_{part}/with/a/long/path" for part in "abcdefgh")
    lines = told("Never push to main!", *parts, "I tell you for later: Jana must sign off any change to deploy/")
    assert lines[-1] == "Never push to main!"
    assert any("Jana" in line for line in lines)


def test_a_sentence_of_a_pasted_text_holds_only_where_it_says_that_it_lasts() -> None:
    pasted = "Tests live next to the code. Never push to main. " + "The service answers within a second. " * 20
    assert told(pasted) == ["Never push to main."]
