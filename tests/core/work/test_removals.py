"""Files that a command takes away."""

import pytest
from palimpsest.core.work.removals import named_by, removals


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        ("rm -f go.work go.work.example 2>/dev/null", ["go.work", "go.work.example"]),
        ("cd /repo/api && git rm -rf --quiet old/ && make", ["/repo/api/old"]),
        ("make\nunlink 'a b.txt'; echo \"rm c.txt\"", ["a b.txt"]),
        ("Remove-Item -Recurse -Force .\\build, .\\notes.md", ["build", "notes.md"]),
        ("Remove-Item -Path src\\a.cs", ["src/a.cs"]),
        ("sudo rm -rf /etc/app; (cd web && rm x.js)", ["/etc/app", "web/x.js"]),
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
    ],
)
def test_what_stays_or_has_no_name_is_not_taken(command: str) -> None:
    assert [*removals(command)] == []


def test_a_name_stands_for_the_nearest_file_and_for_all_below_a_folder() -> None:
    paths = ["/repo/go.work", "/repo/sub/go.work", "/repo/sub/a.py", "sub/b.py"]
    assert [path for path, *_ in named_by("go.work", paths)] == ["/repo/go.work"]
    assert [path for path, *_ in named_by("/repo/sub", paths)] == ["/repo/sub/go.work", "/repo/sub/a.py"]
    assert [path for path, *_ in named_by("sub/*.py", paths)] == ["sub/b.py"]
    assert not named_by("work", paths)
