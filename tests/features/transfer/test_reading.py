"""Files of any kind: told by what they hold, and read past what is broken in them."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain.portable_turn import PortableTurn
from palimpsest.features.transfer import reading
from palimpsest.features.transfer.lines import header_line, to_line
from palimpsest.features.transfer.reading import LOOKED_AT_BYTES, LOOKED_AT_LINES, ReadResult, elements, turns_in

from tests.features.transfer.samples import (
    chatgpt_conversation,
    claude_code_lines,
    claude_conversation,
    codex_lines,
    lines_of,
)

KINDS = {
    "chatgpt": orjson.dumps([chatgpt_conversation()]),
    "claude": orjson.dumps([claude_conversation()], option=orjson.OPT_INDENT_2),
    "claude-code": lines_of(claude_code_lines()),
    "codex": lines_of(codex_lines()),
    "palimpsest": header_line() + to_line(PortableTurn("t-1", "c-1", 1.0, tenant="static:me")),
}
TURNS = {"chatgpt": 4, "claude": 4, "claude-code": 4, "codex": 5, "palimpsest": 1}


def read(*paths: Path) -> tuple[list[PortableTurn], ReadResult]:
    found = ReadResult()
    return list(turns_in(list(paths), found)), found


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_a_file_shows_in_what_it_holds(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_bytes(b"\n" * (kind != "chatgpt") + KINDS[kind])
    turns, found = read(tmp_path / "file")
    assert (len(turns), found.kinds, found.broken, found.unknown) == (TURNS[kind], {kind: 1}, [], [])


def test_an_account_export_is_read_in_its_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", KINDS["chatgpt"])
        archive.writestr("user.json", b'{"id": "me"}')
        archive.writestr("message_feedback.json", b"[]")
    turns, found = read(tmp_path)
    assert len(turns) == 4 and found.kinds == {"chatgpt": 1} and found.broken == []


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
def test_a_conversation_by_itself_is_read(tmp_path: Path, kind: str) -> None:
    value = orjson.loads(KINDS[kind])[0]
    (tmp_path / "a.json").write_bytes(orjson.dumps(value))
    (tmp_path / "b.json").write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    turns, found = read(tmp_path)
    assert len(turns) == 8 and found.kinds == {kind: 2}


def test_broken_conversations_are_named_and_the_others_read(tmp_path: Path) -> None:
    values = [chatgpt_conversation("g-1"), {"mapping": {}}, chatgpt_conversation("g-2")]
    data = orjson.dumps(values).replace(b'"Bees"', b'"half an emoji: \\ud83d"', 1)
    (tmp_path / "c.json").write_bytes(data[:-1] + b', {"mapping": {"cut')
    turns, found = read(tmp_path)
    assert len(turns) == 8
    assert [line.partition("c.json, ")[2].partition(":")[0] for line in found.broken] == [
        "conversation 2",
        "conversation 4",
    ]


@pytest.mark.parametrize("kind", ["claude-code", "codex", "palimpsest"])
def test_broken_lines_are_named_and_the_others_read(tmp_path: Path, kind: str) -> None:
    first, _, rest = KINDS[kind].partition(b"\n")
    (tmp_path / "s.jsonl").write_bytes(first + b'\n{"type": "user", "cut\n[1]\n\n' + rest)
    turns, found = read(tmp_path)
    assert len(turns) == TURNS[kind]
    places = [line.rpartition("s.jsonl:")[2].partition(":")[0] for line in found.broken]
    assert places == ["2", "3"]


def test_a_session_whose_first_line_is_broken_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b'{"cut\n' + KINDS["codex"])
    turns, found = read(tmp_path)
    assert len(turns) == 5 and len(found.broken) == 1


def test_what_holds_no_conversations_is_said(tmp_path: Path) -> None:
    files = {"a.json": b'[{"name": "x"}]', "b.jsonl": b"{}\n" * 200, "c.json": b"", "d.json": b"words"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    turns, found = read(tmp_path)
    assert turns == [] and found.kinds == {} and len(found.unknown) == 4


def test_a_file_that_ends_in_its_middle_gives_what_was_read(tmp_path: Path) -> None:
    import gzip

    data = gzip.compress(KINDS["palimpsest"] * 1 + to_line(PortableTurn("t-2", "c-1", 2.0)) * 5000)
    (tmp_path / "x.gz").write_bytes(data[: len(data) // 2])
    turns, found = read(tmp_path)
    assert len(turns) > 100 and "cannot be read on" in found.broken[-1]


def test_an_export_of_a_newer_version_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"palimpsest":"export","version":9}\n' + KINDS["palimpsest"])
    turns, found = read(tmp_path)
    assert turns == [] and "install a newer palimpsest" in found.broken[0]


def test_a_line_that_is_nested_too_deeply_is_named_and_the_others_read(tmp_path: Path) -> None:
    deep = b'{"turn":"\\ud800","messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n"
    (tmp_path / "file").write_bytes(header_line() + deep + KINDS["palimpsest"].partition(b"\n")[2])
    turns, found = read(tmp_path / "file")
    assert len(turns) == 1
    assert [place.partition(": ")[0] for place in found.broken] == [f"{tmp_path / 'file'}:2"]


def test_little_is_kept_of_a_file_that_is_none_of_ours(tmp_path: Path) -> None:
    line = b" " * (LOOKED_AT_BYTES // 20) + b"x\n"
    with gzip.open(tmp_path / "file.gz", "wb", 1) as packed:
        for _ in range(LOOKED_AT_LINES - 1):
            packed.write(line)
    tracemalloc.start()
    try:
        turns, found = read(tmp_path / "file.gz")
        assert tracemalloc.get_traced_memory()[1] < 2 * LOOKED_AT_BYTES
    finally:
        tracemalloc.stop()
    assert turns == [] and found.unknown == [str(tmp_path / "file.gz")]


def test_a_time_that_has_no_date_is_none(tmp_path: Path) -> None:
    value = orjson.dumps([chatgpt_conversation()]).replace(b'"create_time":1', b'"create_time":1e30,"was":1')
    (tmp_path / "file").write_bytes(value)
    turns, found = read(tmp_path / "file")
    assert len(turns) == 4 and {turn.created_at for turn in turns} == {0.0} and found.broken == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.sampled_from('a"\\[]{},:é ')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('k"\\]}')), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=4)


class Slowly(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(3)


@given(OBJECTS, st.booleans(), st.booleans())
def test_elements_are_those_of_the_list(values: list[Any], is_list: bool, is_indented: bool) -> None:
    option = orjson.OPT_INDENT_2 if is_indented else None
    data = (
        orjson.dumps(values, option=option) if is_list else b"\n".join(orjson.dumps(v, option=option) for v in values)
    )
    for stream in (io.BytesIO(data), Slowly(data)):
        assert [orjson.loads(element) for element in elements(stream)] == values


def test_what_is_cut_off_comes_last() -> None:
    assert [*elements(io.BytesIO(b'\xef\xbb\xbf [{"a": 1}, {"b": "[{'))] == [b'{"a": 1}', b'{"b": "[{']


@pytest.mark.parametrize("data", [b"", b"  ", b"[]", b"]]]}", b'"text', b"[1, 2, 3]"])
def test_where_there_are_no_objects_none_come(data: bytes) -> None:
    assert [*elements(io.BytesIO(data))] == []


def test_no_more_is_kept_than_one_element_and_a_chunk() -> None:
    kept = []

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            kept.append(size)
            return super().read(size)

    element = b'{"text": "' + b"x" * 1000 + b'"}'
    count = sum(1 for _ in elements(Watched(b"[" + b",".join([element] * 5000) + b"]")))
    assert count == 5000 and set(kept) == {reading.CHUNK_BYTES}
