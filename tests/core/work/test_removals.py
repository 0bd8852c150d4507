"""Files that a command removes, moves or restores."""

import pytest
from palimpsest.core.work.account import CallOutcome
from palimpsest.core.work.calls import Act, Call
from palimpsest.core.work.removals import MOST_NAMES, named_by, removals, with_removals

from tests.growing import exponent, repeated


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        ("rm -f go.work go.work.example 2>/dev/null", ["go.work", "go.work.example"]),
        ("cd /repo/api && git rm -rf --quiet old/ && make", ["/repo/api/old"]),
        ("make\nunlink 'a b.txt'; echo \"rm c.txt\"", ["a b.txt"]),
        ("Remove-Item -Recurse -Force .\\build, .\\notes.md", ["build", "notes.md"]),
        ("Remove-Item -Path src\\a.cs", ["src/a.cs"]),
        ("sudo rm -rf /etc/app; (cd web && rm x.js)", ["/etc/app", "web/x.js"]),
        ("(cd sub && rm a.py); rm b.py", ["sub/a.py", "b.py"]),
        (
            "rm app/[id]/page.tsx node_modules/@types/node/index.d.ts",
            ["app/[id]/page.tsx", "node_modules/@types/node/index.d.ts"],
        ),
        ("Remove-Item C:\\x\\a.py", ["C:/x/a.py"]),
        ('cd "$(mktemp -d)" && rm a.py; cd /repo && rm b.py', ["/repo/b.py"]),
        ("rm a.py # because of b.py", ["a.py"]),
    ],
)
def test_what_is_removed_is_named_after_the_folder_of_its_command(command: str, taken: list[str]) -> None:
    assert [*removals(command)] == [(name, "") for name in taken]


@pytest.mark.parametrize(
    ("command", "moved"),
    [
        ("git mv src/a.py src/b.py", [("src/a.py", "src/b.py")]),
        ("mv a.py b.py lib", [("a.py", "lib/a.py"), ("b.py", "lib/b.py")]),
        ("cd web && mv a.ts src/", [("web/a.ts", "web/src/a.ts")]),
        ("mv old new", [("old", "new")]),
        ("mv -t dest a.py", [("a.py", "dest/a.py")]),
        (
            "git mv src/routes/+page.svelte src/routes/+layout.svelte",
            [("src/routes/+page.svelte", "src/routes/+layout.svelte")],
        ),
    ],
)
def test_what_is_moved_has_its_new_name(command: str, moved: list[tuple[str, str]]) -> None:
    assert [*removals(command)] == moved


@pytest.mark.parametrize(
    "command",
    [
        "git rm --cached secrets.env",
        'for f in $FILES; do rm "$f"; done',
        "test -d build || rm build.lock",
        "cat > clean.sh <<'EOF'\nrm a.py\nEOF",
        "docker run --rm app.py",
        "# rm a.py",
        "rm 'open",
        "git rm -n a.py",
        "git rm --dry-run a.py",
        "mv a.py{,.bak}",
        "rm `cat list.txt`",
        'cd "$(mktemp -d)" && tar xf /x.tgz && rm -rf *',
        "cd - && rm a.py",
        "cd && rm a.py",
        "rm -rf ./*",
        "rm a*b*c*d*.py",
    ],
)
def test_what_stays_or_has_no_name_is_not_removed(command: str) -> None:
    assert [*removals(command)] == []


@pytest.mark.parametrize(
    ("command", "removed"),
    [
        ("pytest -q && git rm a.py", []),
        ("pytest -q; rm a.py", ["a.py"]),
        ("cd src && rm a.py && pytest", ["src/a.py"]),
    ],
)
def test_a_command_that_failed_may_not_have_run_what_stands_behind_another_program(
    command: str, removed: list[str]
) -> None:
    assert [name for name, _ in removals(command, is_failure=True)] == removed


@pytest.mark.repeats
@pytest.mark.parametrize("sign", ["\n", "\r\n", " <<a b <<", "(", "&&", "cd a;"])
def test_how_long_a_command_is_read_grows_with_its_length(sign: str) -> None:
    assert exponent(lambda text: [*removals(text)], repeated(sign, "rm a.py "), 4_000, 16_000) < 1.6  # 2 is quadratic


def test_a_name_stands_for_the_nearest_file_and_for_all_below_a_folder() -> None:
    paths = ["/repo/go.work", "/repo/sub/go.work", "/repo/sub/a.py", "sub/b.py"]
    assert [path for path, *_ in named_by("go.work", paths)] == ["/repo/go.work"]
    assert [path for path, *_ in named_by("/repo/sub", paths)] == ["/repo/sub/go.work", "/repo/sub/a.py"]
    assert [path for path, *_ in named_by("sub/*.py", paths)] == ["sub/b.py"]
    assert not named_by("work", paths)


@pytest.mark.parametrize("at_once", [1, 1_000])
def test_commands_name_no_more_files_than_a_person_would_remove_and_the_newest_of_them(at_once: int) -> None:
    names = [f"f{at}.py" for at in range(1_000)]
    commands = [" ".join(["rm", *names[at : at + at_once]]) for at in range(0, len(names), at_once)]
    told = with_removals([CallOutcome(Call(Act.RAN, command, ""), 0, 1) for command in commands])
    removed = [one.call.what for one in told if one.call.act is Act.DELETED]
    assert removed == (names[-MOST_NAMES:] if at_once == 1 else names[:MOST_NAMES])


def test_a_file_that_a_command_wrote_itself_is_not_told_as_removed() -> None:
    done = [CallOutcome(Call(Act.RAN, command, ""), 0, 1) for command in ("make > build/log.txt", "rm build/log.txt")]
    assert len(with_removals(done)) == len(done)
