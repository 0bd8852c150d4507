"""
Views of the page: for each path a template, and the operations of the admin API whose answers fill it.

A view is a projection: whatever it shows can be asked of the API too, and with `format=json` it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from palimpsest.domain.frozen import frozen

PERIOD = ("since", "until", "cursor", "tenant")
LIVE_TURNS = "20"  # a screenful
TURNS_OF_CONVERSATION = "200"


@frozen
class Source:
    """An operation, GET, whose answer a template knows by a name."""

    name: str
    path: str  # as the operation's
    given: Mapping[str, str] = field(default_factory=dict)  # its query
    passes: tuple[str, ...] = ()  # names of the page's own query that are passed on to it
    takes: tuple[str, ...] = ()  # names in the page's own path, likewise
    needs: str = ""  # asked only where the page's query has this
    is_optional: bool = False  # the page is shown without it: it is the operator's alone


@frozen
class View:
    """A page."""

    path: str
    template: str
    sources: tuple[Source, ...]
    shows_losses: bool = False  # of each compaction among its turns


@frozen
class Action:
    """A form's button: an operation with the fields of the form, and the page that is shown then."""

    path: str
    method: str
    operation: str
    then: str = ""  # "": the page that the form names, `back`
    question: str = ""  # put to whoever sends the form, before anything is done; "": none


VIEWS = (
    View(
        "/",
        "overview.html",
        (
            Source("stats", "/stats", is_optional=True),
            Source("latest", "/turns", {"limit": LIVE_TURNS}, ("tenant",)),
            Source("recent", "/conversations", {"limit": "10"}, ("tenant",)),
            Source("health", "/health"),
        ),
    ),
    View(
        "/conversations",
        "conversations.html",
        (Source("page", "/conversations", {"limit": "50"}, (*PERIOD, "user", "scope", "role")),),
    ),
    View(
        "/conversations/{conversation}",
        "conversation.html",
        (
            Source("conversation", "/conversations/{conversation}"),
            Source(
                *("page", "/conversations/{conversation}/turns", {"limit": TURNS_OF_CONVERSATION}),
                ("cursor", "event", "added"),
            ),
            Source("waiting", "/reminders", takes=("conversation",)),
        ),
        shows_losses=True,
    ),
    View(
        "/conversations/{conversation}/work",
        "work.html",
        (Source("conversation", "/conversations/{conversation}"), Source("work", "/conversations/{conversation}/work")),
    ),
    View("/turns/{turn}", "turn.html", (Source("turn", "/turns/{turn}"), Source("loss", "/turns/{turn}/losses"))),
    View(
        "/search",
        "search.html",
        (
            Source("tenants", "/tenants"),
            Source("found", "/search", passes=(*PERIOD, "q", "user", "scope", "role", "conversation"), needs="q"),
            Source("waiting", "/reminders", passes=("tenant", "conversation"), needs="q"),
        ),
    ),
    View(
        "/facts",
        "facts.html",
        (
            Source(
                *("page", "/facts", {"limit": "50"}),
                ("cursor", "tenant", "user", "scope", "category", "matching", "history"),
            ),
        ),
    ),
    View(
        "/costs",
        "costs.html",
        (
            Source("days", "/costs", {"by": "day", "limit": "30"}, ("tenant",)),
            Source("conversations", "/costs", {"by": "conversation", "limit": "30"}, ("tenant",)),
        ),
    ),
    View("/policy", "policy.html", (Source("policy", "/policy"),)),
    View("/health", "health.html", (Source("health", "/health"), Source("stats", "/stats", is_optional=True))),
    View("/forget", "forget.html", (Source("tenants", "/tenants"),)),
)

ACTIONS = (
    Action("/reminders/{memory:int}", "POST", "/reminders"),
    Action("/reminders/{memory:int}/withdraw", "DELETE", "/reminders/{memory}"),
    Action("/facts/{fact}/pin", "PUT", "/facts/{fact}/pin", "/facts"),
    Action("/facts/{fact}/unpin", "DELETE", "/facts/{fact}/pin", "/facts"),
    Action("/facts/{fact}/forget", "DELETE", "/facts/{fact}", "/facts", "Forget this fact for good?"),
)
