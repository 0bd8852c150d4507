"""The account of work that a compaction took away."""

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.core.work.account import LostMessage, account
from palimpsest.core.work.excerpts import LINE_CHARS
from palimpsest.domain import Account

from tests.examples import examples
from tests.growing import exponent


def work(*said: tuple[str, str]) -> list[LostMessage]:
    return [LostMessage(at, role, text) for at, (role, text) in enumerate(said, start=1)]


def call(tool: str, **arguments: object) -> str:
    return f"{tool}({json.dumps(arguments)})"


def told(of: Account) -> dict[str, str]:
    return {line.label: line.text for line in of.lines}


EDIT = call("Edit", file_path="src/parser.py", old_string="def old_rule(): ...", new_string="def new_rule(): ...")
WORK = work(
    ("user", "Make the parser accept empty lines. Always keep the changelog up to date."),
    ("assistant", call("Read", file_path="src/lexer.py")),
    ("tool", "     1\tclass TokenStream(Base):\n     2\t    END_MARK = 'eof'\n"),
    ("assistant", EDIT),
    ("tool", "The file src/parser.py has been updated."),
    ("assistant", EDIT),
    ("tool", "The file src/parser.py has been updated."),
    ("assistant", call("Bash", command="pip install lark-parser")),
    ("tool", "Successfully installed lark-parser-0.12.0"),
    ("assistant", call("Bash", command="pytest tests/parser")),
    ("tool", "2 failed, 3 passed\nE   AssertionError: 3 != 4"),
)


def test_what_was_done_is_told_with_how_often_and_how_it_ended() -> None:
    lines = told(account(WORK, [], 2000))
    assert lines["edited"] == "src/parser.py 2x"
    assert lines["failed"] == "pytest tests/parser: 2 failed; 3 passed; E AssertionError: 3 != 4"
    assert lines["ran"] == "pip install lark-parser → Successfully installed lark-parser-0.12.0"


def test_files_of_one_folder_tell_it_once() -> None:
    edits = [call("Edit", file_path=f"/home/me/project/src/{name}", old_string="a", new_string="b") for name in "xy"]
    lines = told(account(work(*(("assistant", edit) for edit in edits)), [], 2000))
    assert lines["edited"] == "in /home/me/project/src/ y, x"


def test_open_things_come_first() -> None:
    assert [line.label for line in account(WORK, [], 2000).lines][:3] == ["failed", "edited", "ran"]


def test_a_failure_that_passed_later_is_not_open() -> None:
    mended = work(*((one.role, one.text) for one in WORK), ("assistant", call("Bash", command="pytest tests/parser")),
                  ("tool", "5 passed"))  # fmt: skip
    assert "failed" not in told(account(mended, [], 2000))


def ran(*runs: tuple[str, str]) -> list[LostMessage]:
    return work(
        *(said for run, result in runs for said in (("assistant", call("Bash", command=run)), ("tool", result)))
    )


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("psql -h localhost -p 5432 -U app", "PGPASSFILE=.pgpass psql -h localhost -p 7431 -U app"),
        ("KEY=$(vault kv get x) npx playwright test", "npx playwright test"),
        ("pytest tests/parser -x", "pytest -q"),
        ("cd src && make 2>&1 | tail -5", "make"),
        ("pnpm --filter web build", "pnpm --filter web build"),
        ("gofmt -w . && go build ./... | head && go test ./...", "golint run && go test ./... | tail -2 && echo OK"),
        ('go test -run "TestOne|TestTwo"', "go test ./..."),
    ],
)
def test_a_failure_is_closed_by_the_same_program_however_it_is_called(failed: str, passed: str) -> None:
    runs = ((failed, "Exit code 2\nbad_thing: no"), (passed, "fine"))
    assert "failed" not in told(account(ran(*runs), [], 2000))
    assert "failed" in told(account(ran(*reversed(runs)), [], 2000))


def test_a_part_of_a_command_that_passed_closes_no_failure_of_its_end() -> None:
    runs = (("gofmt -w . && go test ./...", "Exit code 1\nbad_thing: no"), ("gofmt -w . && go build ./...", "fine"))
    assert "failed" in told(account(ran(*runs), [], 2000))


@pytest.mark.parametrize(
    ("failed", "passed", "is_open"),
    [
        ("go test ./wire/7/...", "go test ./wire/8/...", True),
        ("go test ./wire/7/...", "go test ./wire/...", False),
        ("npm run build", "npm run lint", True),
        ("python -m pytest tests/test_a.py::test_x", "python -m pytest tests/test_b.py", True),
        ("python -m pytest tests/test_a.py::test_x", "uv run pytest tests/test_a.py -q", False),
        ("pytest tests/a.py tests/b.py", "pytest tests/a.py", True),
        ("pytest -q", "pytest tests/a.py", True),
        ("uv run pytest tests", "uv run ruff check", True),
        ("python manage.py migrate", "python manage.py check", True),
        ("kubectl apply -f web.yaml", "kubectl apply -f db.yaml", True),
        ("docker compose up -d db", "docker compose ps", True),
        ("docker compose up -d db", "docker compose up", False),
        ("git push", "git push -u origin feature/rows", False),
        ("git push origin main", "git push --dry-run", True),
        ("git apply fix2.patch", "git apply fix1.patch", True),
        ("git checkout release-7", "git checkout main", True),
        ("git cherry-pick 1f2e3d4", "git cherry-pick 9a8b7c6", True),
        ("git rebase main", "git rebase --continue", False),
        ("git stash pop", "git stash", True),
        ("git stash pop", "git stash pop", False),
        ("make deploy", "make", True),
        ("make deploy", "make -n deploy", True),
        ("make deploy", "make deploy -j 4", False),
        ("make test", "make test TEST=test_one", True),
        ("./gradlew test", "./gradlew test --tests com.x.FooTest", True),
        ("npm install left-pad", "npm install", True),
        ("npm install left-pad", "npm install --save left-pad", False),
        ("pytest tests/a.py", "pytest --ignore tests/a.py", True),
        ("pytest tests/a.py", "pytest --collect-only", True),
        ("cargo test", "cargo test --no-run", True),
        ("./deploy.sh 3", "./deploy.sh 4", True),
        ("timeout 60 pytest tests", "timeout 120 pytest", False),
    ],
)
def test_a_failure_is_closed_only_by_what_runs_all_of_it(failed: str, passed: str, is_open: bool) -> None:
    runs = ((failed, "Error response from daemon: port is already allocated"), (passed, "fine"))
    assert ("failed" in told(account(ran(*runs), [], 2000))) is is_open


@pytest.mark.parametrize(
    ("failed", "changed", "then", "is_open"),
    [
        ("idf.py build", "/fw/main/net.c", "git commit -am mended", False),
        ("idf.py build", "/fw/domain/other_net.c", "git commit -am mended", True),
        ("idf.py build", "/fw/main/net.c", "git status", True),
        ("idf.py build", "/fw/main/net.c", "echo 'then git commit'", True),
        ("phpstan analyse main", "main/net.c", "git -C /fw commit -am mended && make ship", False),
        ("./deploy.sh prod", "deploy.sh", "git commit -am mended", True),
    ],
)
def test_a_failure_is_closed_by_a_commit_after_a_change_of_the_file_in_which_its_error_stands(
    failed: str, changed: str, then: str, is_open: bool
) -> None:
    broken, mended = ran((failed, "main/net.c:97:9: error: no member")), ran((then, "[main 3f2a1bc] mended"))
    edit = work(("assistant", call("Edit", file_path=changed, old_string="a", new_string="b")), ("tool", "ok"))
    nothing = ran((then, "nothing to commit, working tree clean"))
    for order, stays_open in (
        ((broken, edit, mended), is_open),
        ((edit, broken, mended), True),
        ((broken, edit, nothing), True),
    ):
        said = work(*((one.role, one.text) for part in order for one in part))
        assert ("failed" in told(account(said, [], 2000))) is stays_open


def test_a_command_passed_that_returned_nothing() -> None:
    lines = told(account(ran(("tsc --noEmit", "a.ts(9,45): error TS2345: no"), ("tsc --noEmit", "")), [], 2000))
    assert lines["ran"] == "tsc --noEmit" and "failed" not in lines


def test_what_a_run_printed_that_no_longer_fails_is_not_told() -> None:
    runs = (("make", "Exit code 2\nold_error in lib/parser.py"), ("make", "ok"), ("lint", "Exit code 1\nnew_error"))
    texts = " ".join(line.text for line in account(ran(*runs), [], 2000).lines)
    assert "new_error" in texts and "old_error" not in texts


def test_commands_that_passed_are_told_whole_and_without_what_filters_their_output() -> None:
    lines = told(account(ran(
        ("psql -h localhost -p 7431 -U app", "ok"),
        ("cd src\ngo test ./... 2>&1 | grep -v \"^ok|no\" | head -5; echo \"exit $?\"", "ok"),
        *((look, "x") for look in ("cat a_b.py", "ls --help", "mkdir -p x/y", "python - <<'E'\nx\nE")),
        (f"deploy {'x' * 200}", "ok"),
    ), [], 2000))  # fmt: skip
    assert lines["ran"] == "go test ./...; psql -h localhost -p 7431 -U app"


def test_what_a_user_ran_and_the_client_reports_is_a_run() -> None:
    report = "I ran this command:\n\npytest -q\n\nAnd got this output:\n\n{}"
    said = [("user", report.format(output)) for output in ("2 failed", "NameError: old_name")]
    assert told(account(work(*said), [], 2000))["failed"] == "pytest -q: NameError: old_name"
    assert "failed" not in told(account(work(*said, ("user", report.format("4 passed"))), [], 2000))


def test_a_short_command_is_told_whole_where_its_names_are_needed() -> None:
    command = "scripts/load_rows.sh --into table_one"
    newer = [(f"lint {at}", "ok") for at in range(3)]  # which are told instead
    lines = account(ran((command, "loaded"), *newer), [], 2000).lines
    assert [line.text for line in lines if line.label == "assistant"] == [command]


def test_where_a_command_failed_to_connect_nothing_listens() -> None:
    runs = (("curl http://localhost:5432", "curl: (7) no"), ("curl http://localhost:7431", "ok"))
    assert told(account(ran(*runs), [], 2000))["local"] == "http://localhost:7431"


@pytest.mark.parametrize(
    ("before", "command", "after"),
    [
        ("The new test should fail now.", "pytest tests/new", ""),
        ("", "pytest tests/new", "It fails as expected, so the fix comes next."),
        ("", "pytest tests/new || true", ""),
        ("Let me check that it correctly rejects a bad key.", "./login bad_key", ""),
    ],
)
def test_a_failure_that_was_provoked_is_not_open(before: str, command: str, after: str) -> None:
    def failing(before: str, command: str, after: str) -> list[LostMessage]:
        call_it = f"{before}\n{call('Bash', command=command)}"
        return work(("assistant", call_it), ("tool", "1 failed\nError: no such key"), ("assistant", after or "Done."))

    assert "failed" not in told(account(failing(before, command, after), [], 2000))
    assert "failed" in told(account(failing("Now the tests.", "pytest tests/new", "That is a bug."), [], 2000))


@pytest.mark.parametrize(
    "refusal",
    [
        "<tool_use_error>File has not been read yet: src/big_file.py</tool_use_error>",
        "File content (28334 tokens) exceeds maximum allowed tokens (25000). Please use the GrepTool.",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (src/big_file.py).",
    ],
)
def test_what_a_client_says_instead_of_a_result_is_not_told(refusal: str) -> None:
    assert account(work(("assistant", call("Look")), ("tool", refusal)), [], 2000).lines == ()


def test_names_come_with_words_around_them_and_without_the_numbers_of_lines() -> None:
    everything = "\n".join(line.text for line in account(WORK, [], 2000).lines)
    assert "class TokenStream(Base" in everything and "1\t" not in everything


def test_what_tools_put_around_lines_is_not_told() -> None:
    listing = "-rw-r--r--@  1 me  staff  8573 Jan 16 09:22 READ_ME.md"
    run = "Chunk ID: 246ee2\nWall time: 0.0525 seconds\nOriginal token count: 2243\nOutput:"
    diff = (
        "diff --git a/x.py b/x.py\nindex 528aa98..d778aa8 100644\n@@ -20,7 +20,9 @@ class Old_One\n+  1003→ new_call()"
    )
    texts = "".join(line.text for line in account(work(("tool", f"{run}\n{listing}\n{diff}")), [], 2000).lines)
    assert "READ_ME.md" in texts and "new_call" in texts
    frames = ("staff", "8573", "528aa98", "1003", "Old_One", "--git", "246ee2", "0.0525", "2243")
    assert not [frame for frame in frames if frame in texts]


def test_frames_of_listings_inside_of_listings_are_not_told() -> None:
    text = "  704→+  1021→\t- call_it()\n  715→@@ -1282,7 +1282,7 @@ Exit code\n+++ b/src/lib.py\n--- /dev/null"
    lines = account(work(("tool", text)), [], 2000).lines
    assert [line.text for line in lines] == ["call_it()", "src/lib.py"]


def test_a_stretch_ends_without_the_sign_that_closes_its_sentence() -> None:
    lines = account(work(("assistant", "Now the helper beta_zero.py. It calls parse_all:")), [], 2000).lines
    assert "beta_zero.py." not in lines[0].text and not lines[0].text.endswith(":")


COMMAND = "<command-message>review</command-message>\n<command-name>/review</command-name>"
REVIEW = "Always keep the changelog up to date. The limit is 400 lines of new_rows."


@pytest.mark.parametrize("parts", [(f"{COMMAND}\n{REVIEW}",), (COMMAND, REVIEW)], ids=["one message", "two messages"])
def test_the_text_of_a_clients_command_is_not_the_users(parts: tuple[str, ...]) -> None:
    found = account(work(*(("user", part) for part in parts)), [], 2000)
    assert found.rules == () and told(found).keys() == {"client"} and "new_rows" in told(found)["client"]


def test_what_a_user_typed_behind_a_command_that_its_client_ran_is_the_users() -> None:
    ran = f"{COMMAND}\n<local-command-stdout>done</local-command-stdout>"
    for said in ((("user", f"{ran}\n{REVIEW}"),), (("user", ran), ("user", REVIEW))):
        assert [rule.text for rule in account(work(*said), [], 2000).rules] == [REVIEW.partition(". ")[0] + "."]


def test_paths_beside_which_nothing_stands_are_told_together_whoever_named_them() -> None:
    listing = "src/row_reader.py\nsrc/row_writer.py\nclass RowReader in lib/tokens.py reads old_rows\n"
    lines = told(account(work(("assistant", call("Bash", command="git ls-files")), ("tool", listing)), [], 2000))
    assert lines["paths"] == "src/row_reader.py; src/row_writer.py"
    assert "src/row" not in lines["tool"] and "RowReader" in lines["tool"]


def test_a_stretch_ends_without_a_bracket_or_a_quotation_mark_whose_other_half_is_cut_off() -> None:
    text = 'x = fetch_rows(connection_pool, "the newest of all the rows that were written since yesterday evening", \'b'
    everything = "\n".join(line.text for line in account(work(("assistant", f"{text}{'c' * 90}")), [], 2000).lines)
    assert "fetch_rows connection_pool" in everything.replace(",", "") and "(" not in everything


def test_ids_and_counts_that_clients_put_around_results_are_not_told() -> None:
    notice = "<task_id>ae8_a4fb</task_id>\nread_config in lib/setup.py\ntotal_tokens: 17742\n"
    lines = told(account(work(("user", f"<task-notification>\n{notice}</task-notification>")), [], 2000))
    assert "read_config" in lines["client"] and not any(id in lines["client"] for id in ("ae8_a4fb", "17742"))


def test_what_a_user_typed_behind_a_notice_of_the_client_is_the_users() -> None:
    notice = "<system-reminder>\nThe limit is 4 GB of new_files.\n</system-reminder>\n\n"
    lines = told(account(work(("user", f"{notice}The port is fixed. We settled on port 7431.")), [], 2000))
    assert lines == {"local": "port 7431", "decided": "We settled on port 7431."}, "each once"
    assert "client" in told(account(work(("user", notice)), [], 2000))


def test_decisions_and_values_are_told_in_the_words_in_which_they_were_stated() -> None:
    said = work(
        ("assistant", "The parser is small. Decision: keep the LALR grammar, because the plug-in reads it."),
        ("user", "We settled on SQLite. The worker listens on port 7431, with a timeout of 30 s and retries of 5."),
        ("tool", "Decision: none of ours, port 1234"),
    )
    lines = told(account(said, ["a timeout of 30 s"], 2000))
    assert lines["decided"] == ("Decision: keep the LALR grammar, because the plug-in reads it.; We settled on SQLite.")
    assert (lines["local"], lines["values"]) == ("port 7431", "retries of 5")


def test_decisions_that_name_something_are_told_before_newer_ones_that_name_nothing() -> None:
    said = ["Let's use Redis for the row cache.", "Let's use the old one.", "Let's start with the tests."]
    said += ["Let's take the port 7431.", "Let's drop the rest."]
    lines = told(account(work(*(("user", one) for one in said)), [], 2000))
    assert lines["decided"] == "; ".join((said[0], said[3], said[4]))


def test_a_plan_of_which_the_model_sees_a_later_state_is_not_told() -> None:
    plans = [call("TodoWrite", todos=[{"content": "Fix it", "status": s}]) for s in ("pending", "completed")]
    said = work(("assistant", plans[0]), ("tool", "ok"))
    assert told(account(said, [], 2000))["plan"] == "[ ] Fix it; 0 of 1 steps done"
    assert "plan" not in told(account(said, [plans[1]], 2000))


def test_names_stand_under_the_file_that_they_are_from() -> None:
    lines = told(account(WORK, [], 2000))
    assert lines["read"].startswith("src/lexer.py: ") and "TokenStream" in lines["read"] and "END_MARK" in lines["read"]
    assert lines["file"].startswith("src/parser.py: ") and "new_rule" in lines["file"], "it was changed"


def test_a_path_is_not_told_under_itself() -> None:
    reading = (("assistant", call("Read", file_path="docs/AI-PROVENANCE.md")), ("tool", "see docs/AI-PROVENANCE.md"))
    lines = account(work(*reading), [], 2000).lines
    assert sum(line.text.count("docs/AI-PROVENANCE.md") for line in lines) == 1


def test_names_of_one_line_say_what_they_are_about() -> None:
    line = "    if (session := load_session(user_token)) is None or not is_current(session, at=now()): pass"
    texts = [line.text for line in account(work(("tool", line)), [], 60).lines]
    assert texts == ["load_session user_token is_current"]


def excerpts(role: str, text: str, chars: int = 2000) -> list[str]:
    return "; ".join(line.text for line in account(work((role, text)), [], chars).lines).split("; ")


APART = "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3


def test_names_that_stand_close_together_are_told_as_they_were_said() -> None:
    assert excerpts("tool", f"x = os.WriteFile(target_path) {APART}") == ["os.WriteFile(target_path)"]
    assert excerpts("tool", f"file_one {APART} second_file") == ["file_one second_file"]


def test_names_keep_the_signs_that_belong_to_them() -> None:
    for first, second in (
        ("~/.factory/sessions", "--cloud_url"),
        ("$FULL_PATH", "./lib/a.py"),
        ("@scope/a", ".env_one"),
    ):
        assert excerpts("tool", f"{first} {APART} {second}") == [f"{first} {second}"]
    assert excerpts("tool", f"of().member_one {APART} <-other.events") == ["member_one other.events"]


@pytest.mark.parametrize(
    ("said", "told_of_it"),
    [
        ("watcherWg.Add(1)", "watcherWg.Add(1)"),
        ('"find_all" and the', "find_all"),
        ("ticker_one := <- // of the", "ticker_one"),
        ("- the `start_watch`, and", "start_watch"),
    ],
)
def test_a_stretch_begins_and_ends_with_what_tells_something(said: str, told_of_it: str) -> None:
    assert excerpts("tool", said) == [told_of_it]


LONG = "It is as it was before, and as all of us had wanted it when we spoke of it in spring, on the way"


@pytest.mark.parametrize(
    ("said", "told_of_it"),
    [
        (
            "in the end the service must never read legacy_settings again, whatever the old",
            "never read legacy_settings",
        ),
        ("you really shouldn't read legacy_settings again, whatever the old", "shouldn't read legacy_settings"),
    ],
)
def test_a_stretch_is_not_cut_off_beside_what_negates_it(said: str, told_of_it: str) -> None:
    assert excerpts("assistant", f"{LONG} {said}.") == [told_of_it]


def test_of_a_user_whole_sentences_are_told_and_of_others_nothing_that_he_rejected() -> None:
    said = work(
        ("assistant", "I suggest that MAX_FRAME is raised to 262144, as the kernel_buffer has it."),
        ("user", "Make RELAY_MAX_FRAME configurable. Not 262144, the phones cannot take it. Leave old_relay alone."),
    )
    lines = told(account(said, [], 2000))
    assert lines["user"].startswith("Make RELAY_MAX_FRAME configurable; Not 262144, the phones cannot take it; Leave")
    assert "kernel_buffer" in lines["assistant"] and "262144" not in lines["assistant"]


def test_what_a_user_takes_back_is_not_told_of_his_own_words_either() -> None:
    said = work(
        (
            "user",
            "Cast station_id with safe_cast, and add a not_null test. Ids can have a letter, so string everywhere.",
        ),
        ("assistant", "Both are done."),
        ("user", "Sorry: not safe_cast, string_cast. And safe_mode stays as it is."),
    )
    told_of_user = told(account(said, [], 2000))["user"]
    assert "Cast station_id" not in told_of_user and "not safe_cast, string_cast" in told_of_user
    earlier = told(account([said[2], said[1], said[0]], [], 2000))["user"]
    assert "Cast station_id" in earlier, "what he wants later holds"


def test_what_a_user_forbids_to_touch_is_still_told_of_in_his_words() -> None:
    said = work(
        ("user", "The bug is in src/legacy.py: parse_header() drops the charset. Do not touch src/legacy.py, wrap it."),
        ("assistant", "Wrapped."),
    )
    assert "parse_header() drops" in told(account(said, [], 2000))["user"]


def test_a_value_that_the_user_corrected_is_not_told() -> None:
    first = ("user", "The minimum part size is 8 MiB, with a timeout of 30 s.")
    assert told(account(work(first), [], 2000))["values"] == "size is 8 MiB; timeout of 30 s"
    corrected = work(first, ("user", "Change of plan: minimum part size 16 MiB, not 8."))
    assert told(account(corrected, [], 2000))["values"] == "timeout of 30 s"
    asked = work(first, ("user", "Why do I see a size of 8 MiB at first and a size of 3 MiB after an hour, not 8?"))
    assert "size is 8 MiB" in told(account(asked, [], 2000))["values"]


@pytest.mark.repeats
@pytest.mark.parametrize(
    "said",
    [
        "The limit_{0} is {0} MB. Use {0} workers for job {0}, not {1}.",
        "It had port 8, but not 8.",
        "Never touch module_{0}x. You may touch file_{0}x.",
    ],
)
def test_how_long_statements_are_compared_with_each_other_grows_with_their_number(said: str) -> None:
    def talk(size: int) -> list[LostMessage]:
        return work(*(("user", said.format(at, at + 1)) for at in range(size)))

    assert exponent(lambda lost: account(lost, [], 2000), talk, 400, 1_600) < 1.6


def test_of_what_differs_in_its_digits_alone_few_are_told() -> None:
    log = "\n".join(
        f"12:00:{at:02} conn={1000 + 37 * at} recv by Handler{at} in api_{at}_{at * 7}(x)" for at in range(20)
    )
    asides = [("assistant", f"Handler{at} is fine; its timeout is {at} s.") for at in range(20)]
    lines = told(account(work(("tool", f"{log}\nconn=4711 closed by PEER_RESET_37"), *asides), [], 2700))
    text = "\n".join(lines.values())
    assert lines["values"] == "timeout is 18 s; timeout is 19 s" and "PEER_RESET_37" in text
    for form in (r"conn=\d+ recv", r"Handler\d+", r"api_\d+_\d+"):
        assert len(set(re.findall(form, text))) <= 3, form  # one beside a name that is new


def test_json_that_a_tool_returns_is_told_field_by_field() -> None:
    result = json.dumps({"date": "1990-05-24", "holder": "mia_li_36", "about": "x" * LINE_CHARS})
    assert excerpts("tool", result) == ["date: 1990-05-24", "holder: mia_li_36"]


def test_a_short_value_is_told_whole() -> None:
    assert excerpts("tool", json.dumps({"address2": "Suite 217", "zip": "x" * LINE_CHARS})) == ["address2: Suite 217"]


def test_a_name_of_json_with_a_bracket_is_not_told_without_it() -> None:
    assert excerpts("tool", json.dumps({"src/[id].tsx": {"lines": 4021, "size": 77120}})) == [
        "lines: 4021",
        "size: 77120",
    ]


def test_the_fields_of_a_short_record_stay_together_as_they_tell_what_each_other_is_of() -> None:
    flights = [{"from": "LAS", "flight": "HAT080", "price": 1138}, {"from": "DEN", "flight": "HAT076", "price": 1112}]
    cards = {"card_4421486": {"amount": 2500, "source": "certificate"}}
    assert excerpts("tool", json.dumps({"flights": flights, "cards": cards, "page": 3})) == [
        "flights: from: LAS, flight: HAT080, price: 1138",
        "from: DEN, flight: HAT076, price: 1112",
        "cards: card_4421486: amount: 2500, source: certificate",
    ]


def test_the_name_of_a_field_is_told_with_what_it_holds_or_not_at_all() -> None:
    history = {"payment_methods": {"card_4421486": {"amount": 2500, "source": "x" * LINE_CHARS}}, "created_at": "noon"}
    for told_of_it in excerpts("tool", json.dumps(history)):
        assert told_of_it not in ("payment_methods", "created_at")


def test_what_stands_in_the_tags_of_a_client_is_the_users() -> None:
    task = "<task>\nMake parse_row accept nothing.\n</task>\n<environment_details>\nopen_tabs\n</environment_details>"
    assert "parse_row" in told(account(work(("user", task)), [], 2000))["user"]


def test_nothing_is_said_twice() -> None:
    lines = account(work(("tool", "the parser calls next_token after reset_state, then next_token again")), [], 2000)
    text = "".join(line.text for line in lines.lines)
    assert text.count("reset_state") == 1


def test_breaks_of_a_text_that_was_quoted_inside_of_another_are_resolved() -> None:
    quoted = "\\n".join(f"step_{at} of the plan was taken by worker_{at}" for at in range(8))
    lines = account(work(("assistant", call("Read", path="log")), ("tool", quoted)), [], 2000).lines
    assert "\\n" not in "".join(line.text for line in lines)


def test_rules_of_the_user_stand_apart() -> None:
    rules = account(WORK, [], 2000).rules
    assert [(line.label, line.text, line.occurrences) for line in rules] == [
        ("user", "Always keep the changelog up to date.", (1,))
    ]


def test_what_the_model_still_sees_is_not_told() -> None:
    seen = account(WORK, ["src/parser.py has new_rule and old_rule; TokenStream; pytest tests/parser"], 2000)
    everything = "\n".join(line.text for line in seen.lines)
    for name in ("src/parser.py", "new_rule", "TokenStream", "pytest tests/parser"):
        assert name not in everything


def test_each_line_says_from_which_messages_it_is() -> None:
    by_label = {line.label: line.occurrences for line in account(WORK, [], 2000).lines}
    assert by_label["failed"] == (10, 11) and by_label["edited"] == (6, 7)


texts = st.text(st.sampled_from("ab_/.\n 19→\t(){}\"'"), max_size=200)
roles = st.sampled_from(["user", "assistant", "tool"])


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(roles, texts), max_size=12), st.lists(texts, max_size=2), st.integers(0, 600))
def test_an_account_keeps_to_its_room(said: Sequence[tuple[str, str]], seen: Sequence[str], chars: int) -> None:
    of = account(work(*said), seen, chars)
    assert sum(line.chars for line in of.lines) <= chars
    assert all("\n" not in line.text for line in of.lines)
    assert of == account(work(*said), seen, chars)


def wrote(*paths: str) -> list[tuple[str, str]]:
    made = ((call("Write", file_path=path, content="x"), f"File created successfully at: {path}") for path in paths)
    return [said for written, result in made for said in (("assistant", written), ("tool", result))]


def edited(path: str) -> list[tuple[str, str]]:
    return [
        ("assistant", call("Edit", file_path=path, old_string="a", new_string="b")),
        ("tool", f"The file {path} has been updated."),
    ]


def commanded(command: str, result: str = "") -> list[tuple[str, str]]:
    return [("assistant", call("Bash", command=command)), ("tool", result)]


FILE_LABELS = ("created", "edited", "deleted")


def told_files(*said: tuple[str, str]) -> dict[str, str]:
    lines = told(account(work(*said), [], 2000))
    return {label: text for label, text in lines.items() if label in FILE_LABELS}


def test_what_was_created_and_removed_again_is_told_nowhere() -> None:
    said = [*wrote("/repo/go.work", "/repo/tmp/a.py", "/repo/kept.py"), *commanded("rm -f go.work && rm -rf tmp")]
    assert told_files(*said) == {"created": "/repo/kept.py"}


def test_a_file_that_was_there_and_is_removed_is_told_as_deleted() -> None:
    assert told_files(*edited("src/old.py"), *commanded("git rm src/old.py")) == {"deleted": "src/old.py"}
    assert told_files(*commanded("rm src/old.py")) == {"deleted": "src/old.py"}
    assert told_files(*commanded("make > out.txt; cat out.txt"), *commanded("rm out.txt /tmp/x.log")) == {}


def test_what_a_command_could_not_remove_stays() -> None:
    said = [*wrote("src/a.py"), *commanded("rm src/a.py", "rm: cannot remove 'src/a.py': Permission denied")]
    assert told_files(*said) == {"created": "src/a.py"}


@pytest.mark.parametrize(
    "restore",
    [
        "git checkout -- conf/app.yml",
        "git restore .",
        "git stash",
        "git reset --hard",
        "cd conf && git checkout app.yml",
    ],
)
def test_what_git_restores_is_not_deleted(restore: str) -> None:
    said = [*edited("src/a.py"), *commanded("rm conf/app.yml"), *commanded(restore)]
    assert told_files(*said) == {"edited": "src/a.py"}


@pytest.mark.parametrize("other", ["git checkout main", "git restore --staged .", "git stash pop", "git reset HEAD~1"])
def test_what_git_does_not_restore_stays_deleted(other: str) -> None:
    assert told_files(*commanded("rm conf/app.yml"), *commanded(other)) == {"deleted": "conf/app.yml"}


def test_a_moved_file_is_told_under_its_new_name() -> None:
    assert told_files(*wrote("/repo/src/a.py"), *commanded("git mv src lib")) == {"created": "/repo/lib/a.py"}


def test_what_was_removed_and_made_again_is_told_as_edited() -> None:
    said = [*edited("src/a.py"), *commanded("rm src/a.py"), *wrote("src/a.py")]
    assert told_files(*said) == {"edited": "src/a.py"}
