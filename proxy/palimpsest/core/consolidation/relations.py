"""
Relations in items, for the long-term graph: what is spoken of together, what is a kind of what, and what has which
property. Without whoever spoke, and without anything that leads to a person.

LightMem-SLM (section 3.4) lets a model abstract items into a de-identified graph of entities and concepts. Relations
taken from texts without a model are wrong more often than not where they rest on words that merely stand together. So
the only relation that is taken from those claims no more than that (`related-to`), and needs several items; kinds and
properties come from a few forms of sentence that state them.

A capitalised name may be anybody's. So it is a node only where some item says that it is a thing: "in Leith", "the
Ledger", "PostgreSQL is a database". Words that are not in small letters are no concepts, so that names in any alphabet
stay out, and whoever does what people do, or is what people are, is a person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from palimpsest.core.archive.chunking import STOP_WORDS, TIMES
from palimpsest.domain.frozen import frozen

VERSION = 2  # of these rules: items are read again when it rises

NodeKind = Literal["entity", "concept"]
Relation = Literal["is-a", "has-property", "related-to", "implies"]

NAME_CHARS = 40
SHORT_FORM_CHARS = 3  # of a person's name
WORD_CHARS = 4  # shorter words say little of what an item is about
PLURAL_CHARS = 5  # "gas" and "lens" are none
MOST_NODES = 5  # of an item that are related to each other, the rarest: ten pairs
LEAST_ITEMS = 2  # a word that stands in no other item relates nothing
COMMON_SHARE = 0.05  # of the items: a word that stands in more of them relates everything to everything

_UPPER = "".join(letter for letter in map(chr, range(0x250)) if letter.isupper())  # of Latin alphabets
_CAPITALISED = rf"[{_UPPER}][^\W\d_]+(?:[-'\u2019][^\W\d_]{{2,}})*"
_THING = rf"(?:{_CAPITALISED}(?: {_CAPITALISED}){{0,2}})"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_OPENING = re.compile(r"^[A-Z]\w+(?: [A-Z]\w+)?: ")  # "Ann: ...", as transcripts begin a line
_ENTITY = re.compile(rf"(?<![^\W_])({_THING})(?!\w)")
_SOMEBODY = rf"(?:{_CAPITALISED}(?: (?:[a-z]{{2,3}}[ -])?{_CAPITALISED}){{0,2}})"
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
    r"(?=[,.!?]|$| and\b)"
    rf"|\b({_SOMEBODY}) (?:who|whose|likes?|loves?|hates?|wants?|thinks?|says?|said|told|asked|lives?|lived|works?"
    r"|worked|plays?|played|moved|married|met|bought|studies|studied|cooks?|sings?|teaches|taught|wrote|and I)\b"
    rf"|\b(?:met|told|asked|ask|tell|call|called|invited|visited|married|with|by|for) ({_SOMEBODY})"
    rf"|\b({_SOMEBODY})['\u2019]s? (?:[a-z]+ )?(?:birthday|house|job|wedding|email|number|violin|phone|husband|wife)\b"
)
# Kinds of people: an occupation or a role mostly ends so, and what does not is listed.
_PERSON_KIND = re.compile(
    r"(?:(?<!comput)(?<!serv)(?<!rout)(?<!brows)(?<!pars)(?<!contain)(?<!lay)(?<!riv)(?<!tow)(?<!pap)(?<!compil)er|[ct]or"
    r"|ist|ian|eer|man|woman|nurse|pilot|student|chef|cook|guest|person|friend|child|kid|boy|girl|lady|vegan|widow"
    r"|parent|clerk|judge|priest|monk|poet|artist|agent|expert|patient|client|user|member|athlete|coach|spouse|twin)s?$"
)
_IS_THING = re.compile(rf"\b(?:in|near|the|across|inside|via|using) ({_THING})(?!['\u2019]?\w)")
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
_IS_A = re.compile(rf"(?:^|(?<=[.!?,;] )|\b(?:that|and|but|because|as) )({_THING}),? is an? ({_NOUNS}){_CLOSES}")
_SUCH_AS = re.compile(
    rf"\b([a-z]+s),? (?:such as|like|including) ({_THING}|[a-z]+)(?:, ({_THING}|[a-z]+))?,? and ({_THING}|[a-z]+)\b"
)
_AND_OTHER = re.compile(rf"\b({_THING}|[a-z]+) and other ([a-z]+s)\b")
_IMPLIES = re.compile(
    rf"(?:^|(?<=[.!?,;] )|\b[Tt]he |\b[Aa]n? )({_THING}|[a-z]{{4,}}) "
    rf"(?:requires|needs|implies|causes|leads to|depends on) (?:an? |the )?({_THING}|{_NOUNS}){_CLOSES}"
)
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


def relations(
    text: str, people: Collection[str], frequencies: Mapping[str, int], items: int, things: Collection[str] = ()
) -> tuple[Edge, ...]:
    """
    The relations that an item states, or implies by what stands in it together.

    Args:
        people: names of users and of other persons, in small letters, that no node may bear.
        frequencies: in how many items of the group a word stands (`words`).
        items: of the group.
        things: names that other items say are a thing's (`things_in`), in small letters.

    Returns:
        Each edge once; none of an item that holds a secret, or what leads to a person.
    """
    said = _OPENING.sub("", text)
    if is_private(text):
        return ()
    hidden, known = {*people, *people_in(text)}, {*things, *things_in(text)}

    def may_stand(node: Node) -> bool:
        return not is_hidden(node, hidden) and (node.kind == "concept" or node.name.lower() in known)

    stated = [edge for edge in _stated(said) if all(map(may_stand, edge.nodes)) and edge.source != edge.target]
    return tuple(dict.fromkeys((*stated, *_co_occurrences(said, may_stand, frequencies, items))))


def things_in(text: str) -> frozenset[str]:
    """Names that a text gives to things, in small letters."""
    said = _OPENING.sub("", text)
    kinds = {thing.lower() for thing, kind in _IS_A.findall(said) if not _PERSON_KIND.search(kind)}
    kinds |= {thing.lower() for thing, kind in _AND_OTHER.findall(said) if not _PERSON_KIND.search(kind)}
    kinds |= {
        thing.lower() for kind, *some in _SUCH_AS.findall(said) for thing in some if not _PERSON_KIND.search(kind)
    }
    kinds |= {thing.lower() for thing, _ in _HAS.findall(said)}
    return frozenset(kinds | {thing.lower() for thing in _IS_THING.findall(said)})


def is_private(text: str) -> bool:
    """Whether an item holds a secret, or identifies somebody: no relation is taken from it."""
    return _PRIVATE.search(text) is not None


def node_of(name: str) -> Node | None:
    """The node of a name: an entity where it is capitalised, else a concept; None: it names no kind of thing."""
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
    found |= {part for name, kind in _IS_A.findall(text) if _PERSON_KIND.search(kind) for part in name.lower().split()}
    return frozenset({*found, *(names_of(opening[0]) if opening else ())})


def names_of(user: str) -> frozenset[str]:
    """The words of a user's name or id that could name them: `ann.lee@example.com` is ann and lee, too."""
    return frozenset(part for part in _WORD.findall(user.lower().replace("-", " ")) if len(part) > 1)


def _co_occurrences(
    said: str, may_stand: Callable[[Node], bool], frequencies: Mapping[str, int], items: int
) -> Iterator[Edge]:
    """Edges between the rarest nodes of an item; a phrase counts in place of its words."""
    most = max(COMMON_SHARE * items, LEAST_ITEMS)
    nodes = [
        node
        for node in dict.fromkeys(_nodes(said))
        if LEAST_ITEMS <= frequencies.get(node.name.lower(), 0) <= most and may_stand(node)
    ]
    phrases = {part for node in nodes for part in node.name.lower().split() if " " in node.name}
    nodes = [node for node in nodes if " " in node.name or node.name.lower() not in phrases]
    nodes.sort(key=lambda node: (node.kind != "entity", frequencies[node.name.lower()], node.name))
    for one, other in combinations(sorted(nodes[:MOST_NODES], key=lambda node: (node.name, node.kind)), 2):
        yield Edge(one, "related-to", other)


def _stated(said: str) -> Iterator[Edge]:
    """The relations that a sentence states: is-a, implies, has-property."""
    for thing, kind in _IS_A.findall(said):
        if (concept := _concept(kind)) and (node := node_of(thing)):
            yield Edge(node, "is-a", concept)
    for kinds, *things in _SUCH_AS.findall(said):
        if concept := _concept(kinds):
            yield from (Edge(node, "is-a", concept) for thing in things if (node := node_of(thing)))
    for thing, kinds in _AND_OTHER.findall(said):
        if (concept := _concept(kinds)) and (node := node_of(thing)):
            yield Edge(node, "is-a", concept)
    for thing, other in _IMPLIES.findall(said):
        if (node := node_of(thing)) and (implied := node_of(other)):
            yield Edge(node, "implies", implied)
    for pattern in (_HAS, _IS):
        for thing, held in pattern.findall(said):
            if (concept := _concept(held)) and (node := node_of(thing)):
                yield Edge(node, "has-property", concept)


def _nodes(said: str) -> Iterator[Node]:
    """The entities of a sentence, and its nouns and pairs of nouns as concepts."""
    for entity in _ENTITY.findall(said):
        if node := node_of(entity):
            yield node
    before = ""
    for run in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*|\S", said):
        is_noun = run.islower() and len(run) >= WORD_CHARS and run not in STOP_WORDS and run not in TIMES
        if is_noun and _WORD.fullmatch(run):
            name = _singular(run)
            yield Node("concept", name)
            if before:
                yield Node("concept", f"{before} {name}")
            before = run
        else:
            before = ""


def _concept(text: str) -> Node | None:
    """A concept of one to three words; None where they name no kind of thing."""
    parts: Sequence[str] = text.lower().split()
    if not parts or parts[-1] in STOP_WORDS or parts[-1] in _NOT_A_KIND or len(parts[-1]) < WORD_CHARS - 1:
        return None
    if any(part in STOP_WORDS or part in TIMES for part in parts) or parts[0] in _NOT_A_KIND:
        return None
    return Node("concept", " ".join([*parts[:-1], _singular(parts[-1])]))


def _singular(noun: str) -> str:
    """One form for singular and plural, so that both are one node; a rough one: it only has to be the same."""
    if noun.endswith("ies") and len(noun) > PLURAL_CHARS:
        return noun[:-3] + "y"
    if noun.endswith(("sses", "shes", "ches", "xes")):
        return noun[:-2]
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and len(noun) >= PLURAL_CHARS
    return noun[:-1] if is_plural else noun
