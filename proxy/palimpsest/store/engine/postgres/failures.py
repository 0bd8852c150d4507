"""
PostgreSQL's errors: whether the machine or the record is at fault, and what the operator can do.

Its own texts are not repeated: they quote values of rows.
"""

from __future__ import annotations

import re

import psycopg
from psycopg import errors

ADVICE = {
    "08": "check that the server runs and can be reached; it is tried again",
    "28": "check the user and the file with the password (store.url, store.password_file)",
    "3D": "create the database, and let this user own it",
    "25006": "it is a standby, or set to read only: lead store.url to the server that takes writes",
    "42501": "let this user own the database and its schema",
    "53": "the server is out of disk, memory or connections: give it more, or start fewer processes here",
    "55P03": "another process has been writing for long; it is tried again",
    "57": "the server was stopped, or took too long; it is tried again",
    "58": "the server cannot use its files: its own log says why",
    "XX": "the server reports damage: its own log says where",
}
"""What the operator can do, by the beginning of the SQLSTATE. Other errors are ours, not the server's."""

UNREACHABLE = "08006"  # what libpq says of a connection that failed has no SQLSTATE, only words
REFUSALS = (
    (re.compile("too many (?:clients|connections)|connection slots are reserved"), "53300"),
    (re.compile("password|pg_hba|authentication|role .* does not exist"), "28000"),
    (re.compile("database .* does not exist"), "3D000"),
    (re.compile("session is (?:not )?read-only|server is in hot standby"), "25006"),
)
"""SQLSTATEs of connections that failed, by what servers that speak English and libpq say of them."""
RETRIED = (errors.SerializationFailure, errors.DeadlockDetected)
UNADAPTABLE = "cannot adapt"  # what the driver says of a value of a type that it does not know
OF_THE_DATA = ("22", "23", "54")  # classes: the value is wrong, breaks a constraint, or is too long


def state_of(failure: psycopg.Error) -> str:
    """The SQLSTATE of a failure; `UNREACHABLE` where there is no server to give one, "" where it is the driver's."""
    if failure.sqlstate or not isinstance(failure, psycopg.OperationalError):
        return failure.sqlstate or ""
    return next((state for words, state in REFUSALS if words.search(str(failure))), UNREACHABLE)


def is_of_the_data(failure: psycopg.Error) -> bool:
    """Whether the same record would fail again on any server."""
    is_the_drivers = isinstance(failure, psycopg.DataError) or str(failure).startswith(UNADAPTABLE)
    return is_the_drivers or state_of(failure)[:2] in OF_THE_DATA


def advice_on(failure: psycopg.Error) -> str:
    """What to do about a failure; "": nothing that the operator could."""
    state = state_of(failure)
    return ADVICE.get(state) or ADVICE.get(state[:2], "")


def words_of(failure: psycopg.Error) -> str:
    """A failure, without a value of any row."""
    kind = type(failure).__name__
    if failure.sqlstate and failure.sqlstate.startswith("42"):  # of the statement, which is ours
        return f"{kind} ({failure.diag.message_primary})"
    return f"{kind} ({failure.sqlstate})" if failure.sqlstate else kind
