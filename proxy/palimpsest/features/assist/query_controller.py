"""The controller of recall: plans how a question is looked up, by rules or by a model, in a part of the time left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from palimpsest.core.recall.query_plan import MOST_QUESTIONS, QUESTION_CHARS, plan_by_rules, plan_of
from palimpsest.domain import Json, Query, Teller
from palimpsest.domain.days import day_of
from palimpsest.domain.errors import AssistFault
from palimpsest.domain.ports import Assistants, Clock, Prompt, object_schema
from palimpsest.settings.policy import RecallPolicy

PLANNING_SHARE = 0.4  # of the time until the deadline that a model may take; look-up and selection need the rest

MESSAGE_CHARS = 2000  # of the message; the beginning says what is wanted
ANSWER_TOKENS = 300

INSTRUCTIONS = """\
You plan searches in an archive of earlier conversations between a user and an assistant. You are given the newest
message of the user. Do not answer it. Say what has to be found so that somebody else can answer it.
questions: up to four short, self-contained things to search for. Write each as a statement or question that could
stand in the archive, with the names in it, one for each separate piece of evidence. An empty list if the message itself
is the best search.
first_day, last_day: the days, as YYYY-MM-DD, between which it was said, only if the message tells; else two empty
texts.
said_by: who said what is looked for: user, others (the assistant or another person), tools (results of programs), or
anyone if the message does not tell.
"""

_DAY: Json = {"type": "string", "maxLength": 10}
_QUESTION: Json = {"type": "string", "maxLength": QUESTION_CHARS}
SCHEMA = object_schema(
    questions={"type": "array", "items": _QUESTION, "maxItems": MOST_QUESTIONS},
    first_day=_DAY,
    last_day=_DAY,
    said_by={"type": "string", "enum": [teller.value for teller in Teller]},
)


class QueryController:
    """One per service."""

    def __init__(self, policy: Callable[[], RecallPolicy], assistants: Assistants, clock: Clock) -> None:
        self._policy = policy
        self._assistants = assistants
        self._clock = clock

    async def planned(self, query: Query, deadline: float) -> Query:
        """The query with a plan, or as it is where none is made by the deadline (of the event loop's clock)."""
        controller = self._policy().controller
        if controller == "off" or query.named is not None:  # nobody asks
            return query
        if controller == "rules":
            return replace(query, plan=plan_by_rules(query.text))
        model = self._assistants.of("controller")
        if model is None:
            return query
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(now + PLANNING_SHARE * (deadline - now)):
                answer = await model.answer(prompt(query.text, self._clock()), query.tenant)
        except (AssistFault, TimeoutError):  # counted where it happened
            return query
        return replace(query, plan=plan_of(answer, query.text))


def prompt(message: str, now: float) -> Prompt:
    text = f"Today is {day_of(now)}. The newest message:\n{message[:MESSAGE_CHARS]}"
    return Prompt("query_plan", INSTRUCTIONS, text, SCHEMA, ANSWER_TOKENS)
