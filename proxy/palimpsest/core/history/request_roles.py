"""
The role of a request by its form and its words: part of a conversation, or a side request.

Decided before any state changes, by shape first and words second: a side request has no tools where the conversation
has some, another system prompt, another model; its words ask for a product OF a conversation. People ask such things
too ("summarise what we did"), so words without a change of shape prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from palimpsest.core.caller.client_table import Signals
from palimpsest.domain import Chat, Message, Shape, frozen
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.pieces import squeezed

HEAD_CHARS = 600  # a tool is defined in the first lines; long agent prompts mention everything further down
EDGE_CHARS = 2000  # an instruction is glued to either end of a transcript
OPENING_CHARS = 200  # "[Pause the game. Summarise the most important events so far, ..."
LONG_ASK_CHARS = 400  # nobody types an instruction of this length; clients keep them as templates
ABOUT_CHARS = 60  # "a detailed summary" ... "of the conversation so far"
REMEMBERED_PROMPTS = 512  # beginnings of system prompts: the same one stands in every request of a client
TRANSCRIPT_CHARS = 20_000  # both voices have spoken by then
_SUMMARY = re.compile(r"summar|condens|compact|compress|recap|digest|snapshot|checkpoint|hand-?off|context extract")
_VOICE = r"(user|human|assistant|ai|agent|model)\b"
_TRANSCRIPT = re.compile(  # not over line ends: from each of many empty lines all that follow would be tried
    rf"(?im)(?:^|\\n|>)[^\S\n]*(?:#+ |\*\*|\[|<message type=\"|<|\()?"
    rf"{_VOICE}(?: (?:message|question|response|answer))?"
    rf"[\"\]*)>]*\s*(?::|>|\]|\n|$)|\brole\\?[\"']?\s*[:=]\s*\\?[\"']{_VOICE}"
)
_CONVERSATION = re.compile(
    r"conversation|chat|dialog|discussion|session|messages|history|above|so far|compaction|checkpoint"
)
_LABELLED = re.compile(r":\n|\n[A-Z][\w ]{0,30}: ")
_LISTED = re.compile(r"\n\s*[-*•\d]")


@frozen
class Intent:
    """What the words of a request ask for; only `decide` says what it means."""

    instructs: str = ""  # words that order work on a conversation
    defines: bool = False  # they can mean nothing but a tool of the client's
    asks: str = ""  # words that ask for a product of the conversation before them
    template: bool = False  # asked in a form that clients keep and nobody types
    transcript: bool = False  # a conversation is written out inside one message
    prompted: bool = False  # there is a system prompt
    summarises: bool = False  # the product is a text that may stand for the conversation later
    compacts: bool = False  # it can mean nothing but a compaction, whatever its words
    lone: bool = False  # no assistant message: nothing of a conversation but what is quoted


def intent_of(chat: Chat, signals: Signals) -> Intent:
    """Read what a request asks for, from its words alone."""
    history = chat.history
    if chat.compacts:
        return Intent(compacts=True, summarises=True)
    if not history:
        return Intent()
    first, last = chat.messages[0], _speaking(chat, signals)
    lone = not any(m.role == "assistant" for m in history)
    # never an answer or the result of a tool
    asking = last.text if last.role == "user" or last.is_instruction else ""
    ends = _squeeze(asking if len(asking) <= 2 * EDGE_CHARS else f"{asking[:EDGE_CHARS]} … {asking[-EDGE_CHARS:]}")
    prompt = _squeeze(first.text[:HEAD_CHARS]) if first.is_instruction else ""
    orders = prompt or (ends if lone and len(history) == 1 else "")
    defines = _first_of_orders(signals.defines, orders) if prompt or _is_put_together(asking) else ""
    if lone and len(history) == 1 and (chat.max_reply_tokens == 1 or any(p.fullmatch(ends) for p in signals.probes)):
        defines = ends[:OPENING_CHARS] or "a probe"
    instructs = defines or _first_of_orders(signals.instructs, orders)
    found = []
    if signals.any_asks and signals.any_asks.search(ends):  # mostly not
        found = [match for pattern in signals.asks if (match := pattern.search(ends))]
    hits = [match.group() for match in found]
    about = any(_CONVERSATION.search(ends[match.start() : match.end() + ABOUT_CHARS]) for match in found)
    return Intent(
        instructs=instructs,
        defines=bool(defines),
        asks=hits[0] if hits else "",
        template=bool(hits) and _is_template(last, asking, hits, about, _first_match(signals.forms, ends)),
        transcript=lone and any(_is_transcript(m) for m in (first, last)),
        prompted=bool(prompt),
        summarises=any(_SUMMARY.search(words) for words in (instructs or orders, *hits)),
        lone=lone,
    )


def is_side_request(
    intent: Intent, shape: Shape, parent: Shape | None, quotes: bool, adds_nothing: bool = False
) -> tuple[bool, tuple[str, ...]]:
    """
    Whether it is a side request.

    Args:
        shape: of this request.
        parent: of the last main request of the conversation that it continues or quotes; None when there is none.
        quotes: whether it quotes that conversation inside a message, instead of continuing it.
        adds_nothing: whether it holds a part of that conversation up to an answer, and nobody says anything behind it.

    Returns:
        The verdict and the evidence for it, in words.
    """
    if intent.compacts:
        return True, ("a request for a compaction, by its form",)
    ordered, question = f"instructed: {intent.instructs!r}", f"asked: {intent.asks!r}"
    if intent.lone and not shape.tool_names:
        if intent.defines:
            return True, ("a tool of the client's, without tools of its own", ordered)
        if intent.instructs and quotes:
            return True, ("a conversation that passed here is written out in one message", ordered)
        if intent.instructs and intent.prompted and (intent.transcript or intent.asks):
            return True, ("a conversation is written out in one message, or asked about", ordered)
        if intent.asks and quotes and intent.transcript:
            return True, ("a conversation that passed here is written out in one message", question)
    differs = _differences(shape, parent) if parent is not None else ()
    if intent.instructs and (OTHER_PROMPT in differs if intent.prompted else differs):
        return True, (ordered, *differs)
    if intent.transcript and quotes and not shape.tool_names and {OTHER_PROMPT, TOOLS_GONE} & set(differs):
        return True, ("a conversation that passed here is written out in one message", *differs)
    if adds_nothing and intent.prompted and not shape.tool_names and OTHER_PROMPT in differs:
        return True, ("a conversation that ends with an answer, with nothing said after it", *differs)
    if intent.asks and set(differs) - {OTHER_MODEL}:
        return True, (question, *differs)
    if intent.asks and intent.template:
        return True, ("a template of the client's", question)
    if intent.instructs and intent.asks and parent is None and not shape.tool_names:
        return True, (ordered, question)
    return False, ()


TOOLS_GONE = "the tools of the conversation are gone"
OTHER_PROMPT = "a different system prompt from the conversation's"
OTHER_MODEL = "a different model from the conversation's"  # people switch models too, and ask the new one to sum up


def _speaking(chat: Chat, signals: Signals) -> Message:
    """
    The message that asks: the last one, or the one before an instruction that only lists what a model may use.

    Behind what a person says clients also list what a model may use: an order opens with what it wants.
    """
    last, before = chat.messages[-1], chat.history[-1]
    if not last.is_instruction or before.role != "user":
        return last
    opening = _squeeze(_LISTED.split(last.text[:OPENING_CHARS], 1)[0])
    return last if any(pattern.search(opening) for pattern in signals.asks) else before


def _differences(shape: Shape, parent: Shape) -> tuple[str, ...]:
    """How prompt, tools, model or answer limit differ from the conversation's, as a side request's do, in words."""
    found = []
    if parent.tool_names and not shape.tool_names:
        found.append(TOOLS_GONE)
    if shape.opens != parent.opens:
        found.append(OTHER_PROMPT)
    if shape.model != parent.model:
        found.append(OTHER_MODEL)
    if shape.capped and not parent.capped:
        found.append("the answer is limited in length, unlike the conversation's")
    return tuple(found)


@word_cache(REMEMBERED_PROMPTS)
def _first_of_orders(patterns: tuple[re.Pattern[str], ...], text: str) -> str:
    return _first_match(patterns, text)


def _first_match(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    return next((found.group() for pattern in patterns if (found := pattern.search(text))), "")


def _is_template(last: Message, asking: str, hits: Sequence[str], about: bool, form: str) -> bool:
    """
    Whether a program wrote the request.

    It asks about the conversation, in a line that ends with a colon for the model to continue, in a form that only
    programs use, or at length and with two hits.
    """
    if last.media:
        return False
    *_, line = asking.strip().lower().splitlines()
    if line.endswith(":") and _CONVERSATION.search(line):
        return True
    return about and (bool(form) or (len(hits) > 1 and len(asking) >= LONG_ASK_CHARS))


def _is_put_together(text: str) -> bool:
    """Whether a program composed the text: it is long, or quotes something after a label. People type lines."""
    return len(text) >= LONG_ASK_CHARS or _LABELLED.search(text) is not None


def _is_transcript(message: Message) -> bool:
    """Whether both voices of a conversation are labelled inside one message."""
    found = _TRANSCRIPT.findall(message.text[:TRANSCRIPT_CHARS])
    voices = {voice.lower() for pair in found for voice in pair}
    return bool(voices & {"user", "human"}) and bool(voices & {"assistant", "ai", "agent", "model"})


def _squeeze(text: str) -> str:
    return squeezed(text).lower()
