"""
Relations in items, for the long-term graph: what is spoken of together, what is a kind of what, and what has which
property. Without whoever spoke, and without anything that leads to a person.

LightMem-SLM (section 3.4) lets a model abstract items into a de-identified graph of entities and concepts. Relations
taken from texts without a model are wrong more often than not where they rest on words that merely stand together. So
the only relation that is taken from those claims no more than that (`related-to`), and needs several items; kinds and
properties come from a few forms of sentence that state them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from palimpsest.core.archive.chunking import STOP_WORDS, TIMES
from palimpsest.domain.frozen import frozen

VERSION = 1  # of these rules: items are read again when it rises

NodeKind = Literal["entity", "concept"]
Relation = Literal["is-a", "has-property", "related-to", "implies"]

NAME_CHARS = 40
SHORT_FORM_CHARS = 3  # of a person's name
WORD_CHARS = 4  # shorter words say little of what an item is about
MOST_NODES = 5  # of an item that are related to each other, the rarest: ten pairs
LEAST_ITEMS = 2  # a word that stands in no other item relates nothing
COMMON_SHARE = 0.05  # of the items: a word that stands in more of them relates everything to everything

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_OPENING = re.compile(r"^[A-Z]\w+(?: [A-Z]\w+)?: ")  # "Ann: ...", as transcripts begin a line
_ENTITY = re.compile(
    r"(?<=[^\s.!?:\"(*] )([A-Z][a-z]+(?:-[A-Z][a-z]+)?(?: [A-Z][a-z]+){0,2})\b(?!\w|['\u2019]\w*\w{2})"
)
_SOMEBODY = r"(?:[A-Z][a-z]+(?: [A-Z][a-z]+)?)"
_KIN = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|mother|mom|mum|father|dad|sister|brother|son|daughter|child|kid"
    r"|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|nephew|niece|friend|boss|manager|colleague|teacher"
    r"|roommate|flatmate|neighbou?r|doctor|therapist|coach|client|patient|customer)s?"
)
_PERSON = re.compile(  # names that are said to be a person's
    rf"\b{_KIN},? (?:(?:is|was) (?:called|named) |named |called )?({_SOMEBODY})"
    rf"|\b({_SOMEBODY}),? (?:is |was )?(?:my|our|his|her|their) (?:\w+ )?{_KIN}\b"
    rf"|, ({_SOMEBODY})[!?.]"
    rf"|\b(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Madam)\.? ({_SOMEBODY})"
    rf"|\b(?:I'm|I am|my name is|call me|this is|hi|hey|hello|thanks|thank you|dear|with|and) ({_SOMEBODY})"
    r"(?=[,.!?]|$| and\b)",
)
# What stands beside these is a secret or leads to somebody: nothing is taken from such an item.
_PRIVATE = re.compile(
    r"[@\\]|https?:|www\.|\b(?:password|passphrase|passcode|pin|secret|token|credential|api key|ssn|iban|account number"
    r"|passport|phone|telephone|mobile number|e-?mail|address|street|avenue|road|lane|postcode|zip code|born on"
    r"|date of birth|\[redacted\w*)\b",
    re.IGNORECASE,
)
_NOT_A_KIND = frozenset(
    """
    lot bit way while thing kind sort part bunch few couple chance joke fan bummer blast pleasure treat shame pity must
    reminder matter one time day great good nice really
    """.split()  # noqa: SIM905 - words are read more easily so
)
_NOUNS = r"[a-z]+(?:-[a-z]+)?(?: [a-z]+){0,2}"
_CLOSES = r"(?=[.,;!?]|$| (?:that|who|which|in|on|from|for|with|by|of|to|and)\b)"
_THING = r"(?:[A-Z][a-z]+(?: [A-Z][a-z]+){0,2})"
_IS_A = re.compile(rf"(?:^|(?<=[.!?,;] )|\b(?:that|and|but|because|as) )({_THING}),? is an? ({_NOUNS}){_CLOSES}")
_SUCH_AS = re.compile(
    rf"\b([a-z]+s),? (?:such as|like|including) ({_THING}|[a-z]+)(?:, ({_THING}|[a-z]+))?,? and ({_THING}|[a-z]+)\b"
)
_AND_OTHER = re.compile(rf"\b({_THING}|[a-z]+) and other ([a-z]+s)\b")
_HAS = re.compile(rf"(?:^|(?<=[.!?,;] ))({_THING}) (?:has|supports|contains|includes) an? ({_NOUNS}){_CLOSES}")
_OF_KIND = r"[a-z]{2,}(?:able|ible|ful|ous|ive|ic|al|ish|less|ent|ant|ed)"
_IS = re.compile(rf"(?:^|(?<=[.!?,;] ))({_THING}) is (?:very |so |quite |really )?({_OF_KIND})(?=[.,;!?]|$)")


@frozen
class Node:
    """Something that is spoken of. Names of concepts are in small letters."""

    kind: NodeKind
    name: str


@frozen
class Edge:
    """One relation between two nodes. `related-to` holds both ways; its nodes stand in the order of their names."""

    source: Node
    relation: Relation
    target: Node

    @property
    def nodes(self) -> tuple[Node, Node]:
        return self.source, self.target


def relations(text: str, people: Collection[str], frequencies: Mapping[str, int], items: int) -> tuple[Edge, ...]:
    """
    What an item relates.

    Args:
        people: names of users and of other persons, in small letters, that no node may bear.
        frequencies: in how many items of the group a word stands (`words`).
        items: of the group.

    Returns:
        Each edge once; none of an item that holds a secret, or what leads to a person.
    """
    said = _OPENING.sub("", text)
    if is_private(text):
        return ()
    hidden = {*people, *people_in(text)}
    stated = [edge for edge in _stated(said) if not (is_hidden(edge.source, hidden) or is_hidden(edge.target, hidden))]
    found = [*stated, *_together(said, hidden, frequencies, items)]
    return tuple(dict.fromkeys(found))


def is_private(text: str) -> bool:
    """Whether an item holds a secret, or what leads to somebody: nothing is taken from it."""
    return _PRIVATE.search(text) is not None


def node_of(name: str) -> Node | None:
    """What a name names: an entity where it is capitalised, else a concept; None: it names no kind of thing."""
    if not name[:1].isupper():
        return _concept(name)
    is_word = any(part in STOP_WORDS or part in TIMES for part in name.lower().split())
    return None if is_word else Node("entity", name)


def words(text: str) -> frozenset[str]:
    """What an item speaks of, in small letters: words that mean something, and names of things."""
    return frozenset(node.name.lower() for node in _nodes(_OPENING.sub("", text)))


def is_hidden(node: Node, people: Collection[str]) -> bool:
    """Whether a node bears a person's name, or is no plain word at all."""
    parts = node.name.lower().split(" ")
    if len(node.name) > NAME_CHARS or any(part in people or not _WORD.fullmatch(part) for part in parts):
        return True
    if node.kind == "concept":
        return False
    # Mel of Melanie
    return any(name.startswith(part) for part in parts if len(part) >= SHORT_FORM_CHARS for name in people)


def people_in(text: str) -> frozenset[str]:
    """Names that a text says are a person's, and the one that it says it is spoken by, in small letters."""
    opening = _OPENING.match(text)
    found = {part for names in _PERSON.findall(text) for name in names for part in name.lower().split()}
    return frozenset({*found, *(names_of(opening[0]) if opening else ())})


def names_of(user: str) -> frozenset[str]:
    """The words of a user's name or id that could name them: `ann.lee@example.com` is ann and lee, too."""
    return frozenset(part for part in _WORD.findall(user.lower().replace("-", " ")) if len(part) > 1)


def _together(said: str, hidden: Collection[str], frequencies: Mapping[str, int], items: int) -> Iterator[Edge]:
    """The rarest of what stands in an item, each with each other."""
    most = max(COMMON_SHARE * items, LEAST_ITEMS)
    nodes = [
        node
        for node in dict.fromkeys(_nodes(said))
        if LEAST_ITEMS <= frequencies.get(node.name.lower(), 0) <= most and not is_hidden(node, hidden)
    ]
    nodes.sort(key=lambda node: (node.kind != "entity", frequencies[node.name.lower()], node.name))
    for one, other in combinations(sorted(nodes[:MOST_NODES], key=lambda node: (node.name, node.kind)), 2):
        yield Edge(one, "related-to", other)


def _stated(said: str) -> Iterator[Edge]:
    for thing, kind in _IS_A.findall(said):
        if (concept := _concept(kind)) and (node := node_of(thing)):
            yield Edge(node, "is-a", concept)
    for kinds, *things in _SUCH_AS.findall(said):
        if concept := _concept(kinds):
            yield from (Edge(node, "is-a", concept) for thing in things if (node := node_of(thing)))
    for thing, kinds in _AND_OTHER.findall(said):
        if (concept := _concept(kinds)) and (node := node_of(thing)):
            yield Edge(node, "is-a", concept)
    for pattern in (_HAS, _IS):
        for thing, property in pattern.findall(said):
            if (concept := _concept(property)) and (node := node_of(thing)):
                yield Edge(node, "has-property", concept)


def _nodes(said: str) -> Iterator[Node]:
    named = set()
    for entity in _ENTITY.findall(said):
        if node := node_of(entity):
            named.update(entity.lower().split())
            yield node
    for word in _WORD.findall(said):
        low = word.lower()
        if len(low) >= WORD_CHARS and low not in STOP_WORDS and low not in TIMES and low not in named:
            yield Node("concept", low)


def _concept(text: str) -> Node | None:
    """A concept of one to three words; None where they name no kind of thing."""
    parts: Sequence[str] = text.lower().split()
    if not parts or parts[-1] in STOP_WORDS or parts[-1] in _NOT_A_KIND or len(parts[-1]) < WORD_CHARS - 1:
        return None
    if any(part in STOP_WORDS or part in TIMES for part in parts) or parts[0] in _NOT_A_KIND:
        return None
    return Node("concept", " ".join(parts))
