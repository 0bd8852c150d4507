"""A script is what the tests make of it: in turn, and then over."""

from __future__ import annotations

from palimpsest.evaluation.scripted.reply import PIECE_CHARS, Received, Reply, in_turn, opaque, pieces


def test_replies_come_in_turn_and_then_the_script_is_over() -> None:
    script = in_turn("one", Reply("two"))
    assert [script({}), script({})] == ["one", Reply("two")]
    assert script({}) == Reply("the script is over", status=500)


def test_pieces_make_the_text_again() -> None:
    text = "a text that is longer than one piece of a stream, and than two"
    assert "".join(pieces(text)) == text
    assert max(map(len, pieces(text))) == PIECE_CHARS and not list(pieces(""))


def test_what_is_opaque_shows_nothing_and_tells_two_things_apart() -> None:
    assert opaque("port 7431") == opaque("port 7431") != opaque("port 7432")
    assert "7431" not in opaque("port 7431")


def test_body_that_is_no_object_is_read_as_empty() -> None:
    assert [Received("POST", "/v1/x?y=1", {}, body).json for body in (b"{", b"[1]", b'{"a": 1}')] == [{}, {}, {"a": 1}]
    assert Received("POST", "/v1/x?y=1", {}, b"").endpoint == "/v1/x"
