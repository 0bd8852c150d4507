"""Calls of tools, read by the shape of their arguments and results."""

import json

import pytest
from palimpsest.core.work.calls import (
    Act,
    calls_of,
    changed_by,
    is_look,
    is_machine,
    only_looks,
    outcome_of,
    printed,
    run_by_user,
    written_edits,
)

from tests.growing import exponent, repeated


def called(tool: str, **arguments: object) -> tuple[Act, str]:
    said, (call, *_) = calls_of(f"I will.\n{tool}({json.dumps(arguments)})")
    assert said == "I will."
    return call.act, call.what


@pytest.mark.parametrize(
    ("tool", "arguments", "act", "what"),
    [
        ("Edit", {"file_path": "a/b.py", "old_string": "x", "new_string": "y"}, Act.EDITED, "a/b.py"),
        ("str_replace_editor", {"path": "a/b.py", "old_str": "x", "new_str": "y"}, Act.EDITED, "a/b.py"),
        ("str_replace_editor", {"command": "view", "path": "a/b.py"}, Act.READ, "a/b.py"),
        ("str_replace_editor", {"command": "create", "path": "a/b.py", "file_text": "x"}, Act.CREATED, "a/b.py"),
        ("text_editor", {"command": "insert", "path": "a/b.py", "insert_line": 3}, Act.EDITED, "a/b.py"),
        ("run", {"command": "make", "cwd": "/src"}, Act.RAN, "make"),
        ("mcp__fs__put", {"path": "a/b.py", "content": "x"}, Act.CREATED, "a/b.py"),
        ("Write", {"file_path": "a/b.py", "content": "x"}, Act.CREATED, "a/b.py"),
        ("read_file", {"target_file": "a/b.py", "offset": 3}, Act.READ, "a/b.py"),
        ("delete_file", {"path": "a/b.py"}, Act.DELETED, "a/b.py"),
        ("Bash", {"command": "pytest -q", "description": "test"}, Act.RAN, "pytest -q"),
        ("shell", {"command": ["bash", "-lc", "make all"]}, Act.RAN, "make all"),
        ("Bash", {"input": "Run it\n\n`go test ./...`"}, Act.RAN, "go test ./..."),
        ("Read", {"input": "`./pkg/x.go`"}, Act.READ, "./pkg/x.go"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: n.py\n+x\n"}, Act.CREATED, "n.py"),
        ("search_flights", {"origin": "SFO"}, Act.OTHER, ""),
    ],
)
def test_what_a_call_does_is_told_by_its_arguments(
    tool: str, arguments: dict[str, object], act: Act, what: str
) -> None:
    assert called(tool, **arguments) == (act, what)


def test_a_patch_changes_each_of_its_files() -> None:
    patch = "*** Update File: a.py\n@@\n-x\n+y\n*** Delete File: b.py\n"
    _, calls = calls_of(f"apply_patch({json.dumps({'input': patch})})")
    assert [(call.act, call.what) for call in calls] == [(Act.EDITED, "a.py"), (Act.DELETED, "b.py")]


def test_a_plan_tells_its_open_steps_first() -> None:
    steps = [("write it", "completed"), ("test it", "in_progress"), ("ship it", "pending")]
    todos = [{"content": content, "status": status} for content, status in steps]
    assert called("TodoWrite", todos=todos) == (Act.PLANNED, "[~] test it; [ ] ship it; 1 of 3 steps done")


def test_arguments_that_cannot_be_read_are_kept_as_they_are() -> None:
    _, (call,) = calls_of('Edit({"path": [redacted:token]})')
    assert (call.act, call.what) == (Act.OTHER, "") and "redacted" in call.text
    _, (deep,) = calls_of(f'Edit({{"path": {"[" * 1_000}{"]" * 1_000}}})')
    assert (deep.act, deep.what) == (Act.OTHER, "")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("collected 5\n3 passed in 0.1s", ("3 passed", False)),
        ("1 failed, 3 passed\nE  AssertionError: 1 != 2", ("1 failed; 3 passed; E AssertionError: 1 != 2", True)),
        ("Traceback (most recent call last):\n  x\nValueError: bad", ("ValueError: bad", True)),
        ("zsh: command not found: gawk", ("zsh: command not found: gawk", True)),
        ("Exit code: 2\nboom", ("exit 2; boom", True)),
        ("step one\nbumm\nkaputt\nexit status 1", ("exit 1; bumm; kaputt", True)),
        ("Output: x\nconfig is invalid\nstopped\nError: (none)\nExit Code: 8", ("exit 8; config is invalid", True)),
        ("port 5432 failed: nobody is there\nExit code: 0", ("", False)),
        ("12:04:24 ERROR is a level\n3 passed", ("3 passed", False)),
        ("fix.go, line 2 error\n--- PASS: TestWriteError (0.00s)\n=== RUN   TestWriteError\nPASS", ("", False)),
        ("  File b.py, line 3\nb.py:3: KeyError\n", ("b.py:3: KeyError", True)),
        ('+\tt.Fatalf("Load() returned error: %v", err)\n+\treturn Bad{Text: "cannot use both"}', ("", False)),
        ('14:45 WARN no link error="lstat /tmp/x: no such file"\nok', ("", False)),
        ("Tests run: 6, Failures: 1, Errors: 0", ("Tests run: 6, Failures: 1, Errors: 0", True)),
        ("ok, exit code 0", ("", False)),
        ("", ("", False)),
    ],
)
def test_how_a_command_ended_is_told_in_one_line(result: str, outcome: tuple[str, bool]) -> None:
    assert outcome_of(result) == outcome


@pytest.mark.parametrize(
    "edit",
    [
        "src/a.py\n```python\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```",
        "src/a.py\n<source>python\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n</source>",
        "```diff\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n```",
    ],
    ids=["fence", "tag", "diff"],
)
def test_edits_that_a_text_holds_are_edits(edit: str) -> None:
    assert [(call.act, call.what) for call in written_edits(f"I'll change it:\n\n{edit}\n\nDone.")] == [
        (Act.EDITED, "src/a.py")
    ]


@pytest.mark.parametrize(
    ("command", "result", "told"),
    [
        ("grep -rn error src", "src/a.go: return ValidationError{", ("", False)),
        ("cd /x && git diff main", "+ raise ValueError: no\n--- FAIL", ("", False)),
        ("M=$(go env GOMODCACHE)/x && grep -n err $M/a.go", "4: error: no", ("", False)),
        ("./run --help", "  --silent  Suppress all non-error output", ("", False)),
        ("go build ./...", "a.go:8: cannot use x as y", ("a.go:8: cannot use x as y", True)),
        ("curl -sS http://localhost:7431", "curl: (7) Couldn't connect", ("curl: (7) Couldn't connect", True)),
        ("PORT=1 /bin/ls x | sort", "ls: Zugriff auf x nicht möglich", ("ls: Zugriff auf x nicht möglich", True)),
        ("./bin/deploy staging", "deploy: web@b81e0aa -> staging ... ok in 2m41s", ("", False)),
        ("nginx -t", "nginx: configuration file test is successful", ("", False)),
        ("php artisan migrate", "SQLSTATE[HY000] [2002] gone", ("SQLSTATE[HY000] [2002] gone", True)),
        ("./load", "upstream 10.0.0.4: Connection refused", ("upstream 10.0.0.4: Connection refused", True)),
        ("./load", "db: Connection refused, trying again\nconnected, 12 rows", ("", False)),
        ("pg_ctl stop", "pg_ctl: no server running", ("pg_ctl: no server running", True)),
        ("rsync -a x y:", "rsync: 12 sent, 3 not sent: disk full", ("rsync: 12 sent, 3 not sent: disk full", True)),
        ("go get golang.org/x/term", "go: downloading golang.org/x/term v0.40.0", ("", False)),
        ("curl -s http://a/notes", "curl: a program\nwget: another one", ("", False)),
        ("kubectl -n shop logs api", "Error: from the log", ("", False)),
        ("pip install lark", "Successfully installed lark-0.12.0", ("Successfully installed lark-0.12.0", False)),
        ("git commit -m x", "[main 3f2a1bc] x\n 1 file changed", ("[main 3f2a1bc] x", False)),
    ],
)
def test_what_a_command_shows_is_no_failure_and_what_it_leaves_is_told(
    command: str, result: str, told: tuple[str, bool]
) -> None:
    assert outcome_of(result, command) == told


@pytest.mark.parametrize("sign", ["\n", " ", ";", '"'])
def test_how_long_a_result_is_read_grows_with_its_length(sign: str) -> None:
    assert exponent(lambda text: outcome_of(text, text), repeated(sign), 4_000, 16_000) < 1.6  # 2 is quadratic


@pytest.mark.parametrize("sign", ["\n", " ", "-\n", "1. "])
def test_how_long_a_call_is_read_grows_with_its_length(sign: str) -> None:
    def called_with(size: int) -> str:
        return f"Bash({json.dumps({'command': repeated(sign, 'cat > x.csv')(size)})})"

    assert exponent(calls_of, called_with, 4_000, 16_000) < 1.6


@pytest.mark.parametrize(
    ("message", "looks"),
    [
        ('read({"path": "src/app.py"})', True),
        ('bash({"command": "ls apps | tail -3"})\nread({"path": "src/app.py"})', True),
        ('bash({"command": "gh pr create -B develop"})', False),
        ('edit({"path": "src/app.py", "old": "a", "new": "b"})', False),
        ('The port is 7431.\nread({"path": "src/app.py"})', False),
        ("It reads main(argv).", False),
        ("", False),
    ],
)
def test_a_message_that_only_calls_what_shows_something_is_a_look(message: str, looks: bool) -> None:
    assert is_look(message) is looks


@pytest.mark.parametrize("program", ["gcc ", "docker ", "git ", "kubectl ", "sudo ", "ssh "])
@pytest.mark.parametrize("flag", ["-Wall ", "-f compose ", "-n x ", "-a -- "])
def test_how_long_a_command_is_read_grows_with_the_number_of_its_flags(program: str, flag: str) -> None:
    assert exponent(only_looks, repeated(flag, program), 4_000, 16_000) < 1.6


def test_what_a_tool_printed_is_taken_out_of_its_json() -> None:
    result = json.dumps({"output": "first\nlast", "metadata": {"exit_code": 101}})
    assert outcome_of(printed(result)) == ("exit 101; first; last", True)
    assert outcome_of(printed(result.replace("101", "0"))) == ("", False)
    for other in ('{"rows": [1]}', '{"output": cut off', "plain"):
        assert printed(other) == other


def test_a_run_that_a_client_reports_in_the_users_name_is_one() -> None:
    run = run_by_user("I ran this command:\n\npytest -q\n\nAnd got this output:\n\n1 failed")
    assert run is not None and (run[0].act, run[0].what, run[1]) == (Act.RAN, "pytest -q", "1 failed")
    assert run_by_user("I ran this command: pytest") is None


@pytest.mark.parametrize(
    ("result", "act"),
    [
        ("The file /src/a.py has been updated successfully.", Act.EDITED),
        ("File created successfully at: /src/a.py", Act.CREATED),
        ("Applied edit to /src/a.py", Act.EDITED),
    ],
)
def test_a_result_tells_what_was_changed(result: str, act: Act) -> None:
    change = changed_by(result)
    assert change is not None and (change.act, change.what) == (act, "/src/a.py")


def test_other_results_tell_no_change() -> None:
    assert changed_by("/src/a.py\n/src/b.py") is None and changed_by("No file was updated") is None


def test_a_plan_whose_steps_are_all_done_has_nothing_to_tell() -> None:
    assert called("TodoWrite", todos=[{"content": "Fix it", "status": "completed"}]) == (Act.PLANNED, "")


def test_a_place_that_is_no_file_is_none() -> None:
    assert called("search_flights", origin="SEA", destination="JFK", date="2024-05-20") == (Act.OTHER, "")
    assert called("Task", input="Explore the roles/schema") == (Act.OTHER, "")


def test_what_begins_or_ends_alike_was_said_by_a_program() -> None:
    results = [f"{at} passed\n(Current directory: /src)\nbash-$" for at in range(5)]
    assert is_machine(["Solve it.", *results])
    assert not is_machine(["Go on."] * 9), "people say so, too"
    assert not is_machine([f"{at}\nThanks {at}" for at in range(9)])


@pytest.mark.parametrize(
    "look",
    [
        *("journalctl -u app --since friday", "sudo tail -n 50 /var/log/app.log", "docker logs --tail 20 api"),
        *("docker compose -f dev.yml logs api", "kubectl -n shop logs deploy/api", "less build.log", "git log -p"),
        *("ssh me@host 'journalctl -u app'", 'sqlite3 app.db "select error from jobs"', "grep -rn Traceback ."),
    ],
)
def test_errors_that_a_look_shows_are_no_failure_of_its_own(look: str) -> None:
    assert outcome_of("Traceback (most recent call last):\nValueError: 3\nFAILED tests/test_a.py", look) == ("", False)


@pytest.mark.parametrize(
    "run",
    [
        *("sqlite3 app.db < migrate.sql", "python logs.py", "systemctl restart app", "rm -rf logs", "mkdir logs"),
        *("make logs", 'sqlite3 app.db "insert into t select * from u"', "git reflog expire --all"),
        *('sqlite3 app.db "create table x as select 1"', "ssh web ls && ./deploy.sh", "journalctl --vacuum-time=1d"),
    ],
)
def test_what_does_something_may_fail(run: str) -> None:
    assert outcome_of("Traceback (most recent call last):\nValueError: 3", run)[1]
