"""Sessions: a cookie's value opens what its key opens, for a working day."""

from __future__ import annotations

from palimpsest.features.page.sessions import MOST_SESSIONS, SESSION_SECONDS, Sessions


def test_a_session_ends_by_itself_and_when_it_is_ended() -> None:
    now = 0.0
    sessions = Sessions(lambda: now)
    name, other = sessions.begin("key"), sessions.begin("other")
    assert (sessions.secret(name), sessions.secret("x")) == ("key", "")
    sessions.end(name)
    assert (sessions.secret(name), sessions.secret(other)) == ("", "other")
    now = SESSION_SECONDS
    assert sessions.secret(other) == ""


def test_the_oldest_ends_before_there_are_too_many() -> None:
    sessions = Sessions(lambda: 0.0)
    names = [sessions.begin(str(at)) for at in range(MOST_SESSIONS + 1)]
    assert sessions.secret(names[0]) == ""
    assert sessions.secret(names[1]) == "1"
