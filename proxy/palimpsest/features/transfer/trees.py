"""
Conversations of other programs, which are trees of messages, as turns.

A turn begins with each thing that somebody says, and ends with the model's answer. Where a conversation branches (an
answer made again, a question edited), the branch keeps what stands in front of it and brings only what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from palimpsest.domain import Ending, Event, Json, Role, frozen
from palimpsest.domain.portable_turn import PortableMessage, PortableTurn, stable_id
from palimpsest.wire.message import is_aside, read_message

INSTRUCTIONS = ("system", "developer")


@frozen
class Node:
    """
    One place of a conversation's tree.

    `raw` is a message in the form of its wire; None: a place without one, which only leads on.
    """

    id: str
    parent: str = ""
    raw: Json | None = None
    at: float = 0.0  # Unix seconds; 0 unknown
    model: str = ""
    resets: bool = False  # the model no longer saw what stands in front of it: a compaction
    is_summary: bool = False


@frozen
class Tree:
    """A conversation of another program: its name there, and its places, parents in front of their children."""

    program: str
    id: str
    nodes: Sequence[Node]
    current: str = ""  # the place where the conversation stands now; "" the last
    began_at: float = 0.0  # Unix seconds
    role: Role = Role.MAIN
    client_ids: tuple[str, ...] = ()
    serves: str = ""


@dataclass(slots=True)
class _Draft:
    """A turn that is being put together."""

    nodes: list[int]  # what it brings, without the answer
    answer: int = -1
    parent: int = -1  # number of the turn that it goes on from
    kept: int = 0  # how many messages of that turn's listing it carries, from the first on
    has_children: bool = False
    is_branch: bool = False  # another turn goes on from the same place


def turns_of(tree: Tree) -> Iterator[PortableTurn]:
    """The turns of a tree, branches in front and the current path last, parents in front of their children."""
    nodes, parent = tree.nodes, _parents(tree.nodes)
    last = next((at for at, node in enumerate(nodes) if node.id == tree.current), len(nodes) - 1)
    is_current = set(_path(parent, last))
    drafts: list[_Draft] = []
    turn_of: dict[int, int] = {}  # node: the turn that brought it
    for at, node in enumerate(nodes):
        if node.raw is None:
            continue
        said = _previous(nodes, parent, at)
        before = turn_of.get(said, -1)
        draft = drafts[before] if before >= 0 else None
        is_answer = node.raw.get("role") == "assistant"
        goes_on = draft is not None and draft.answer < 0 and draft.nodes[-1:] == [said] and not node.resets
        if goes_on and draft is not None and (is_answer or not _begins(nodes, draft, node)):
            if is_answer:
                draft.answer = at
            else:
                draft.nodes.append(at)
            turn_of[at] = before
            continue
        is_branch = draft is not None and draft.has_children
        if draft is not None:
            draft.has_children = True
        kept = 0 if node.resets or draft is None else _listing_length(nodes, draft, said)
        drafts.append(_Draft([] if is_answer else [at], at if is_answer else -1, before, kept, is_branch=is_branch))
        turn_of[at] = len(drafts) - 1
    order = sorted(
        range(len(drafts)), key=lambda number: bool(is_current & {*drafts[number].nodes, drafts[number].answer})
    )
    yield from _finished(tree, drafts, _with_parents_first(order, drafts))


def _parents(nodes: Sequence[Node]) -> list[int]:
    """The index of each node's parent, -1 at a root or where it does not stand in front."""
    index: dict[str, int] = {}
    found = []
    for at, node in enumerate(nodes):
        found.append(index.get(node.parent, -1) if node.parent else -1)
        index.setdefault(node.id, at)
    return found


def _path(parent: Sequence[int], at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = parent[at]


def _previous(nodes: Sequence[Node], parent: Sequence[int], at: int) -> int:
    """The next message in front of a node, -1 where it is the first."""
    return next((one for one in _path(parent, parent[at]) if nodes[one].raw is not None), -1)


def _begins(nodes: Sequence[Node], draft: _Draft, node: Node) -> bool:
    """Whether a message begins a new turn: a user speaks, and one has spoken in this turn already."""
    return _role(node) == "user" and any(_speaks(nodes[at]) for at in draft.nodes)


def _speaks(node: Node) -> bool:
    """Whether a node says something besides what a client adds between tags."""
    if node.raw is None or _role(node) != "user" or node.is_summary:
        return False
    return not is_aside(read_message(node.raw).text)


def _role(node: Node) -> str:
    return str(node.raw["role"]) if node.raw else ""


def _added_messages(nodes: Sequence[Node], draft: _Draft) -> list[int]:
    """The messages that a turn adds to its parent's listing."""
    own = [at for at in draft.nodes if _role(nodes[at]) not in INSTRUCTIONS]
    return [*own, *([draft.answer] if draft.answer >= 0 else [])]


def _listing_length(nodes: Sequence[Node], draft: _Draft, said: int) -> int:
    """How many messages of a turn's listing there are up to one of its nodes, inclusive."""
    return draft.kept + sum(at <= said for at in _added_messages(nodes, draft))


def _with_parents_first(order: Sequence[int], drafts: Sequence[_Draft]) -> Iterator[int]:
    """The drafts in order, each behind its parent."""
    done: set[int] = set()
    for number in order:
        waiting = []
        while number >= 0 and number not in done:
            waiting.append(number)
            number = drafts[number].parent
        for one in reversed(waiting):
            done.add(one)
            yield one


def _finished(tree: Tree, drafts: Sequence[_Draft], order: Iterator[int]) -> Iterator[PortableTurn]:
    """The turns of drafts, with stable ids, times and events."""
    nodes = tree.nodes
    ids: Mapping[int, str] = {
        number: stable_id(tree.program, tree.id, nodes[(*draft.nodes, draft.answer)[0]].id)
        for number, draft in enumerate(drafts)
    }
    conversation = tree.id if tree.client_ids else stable_id(tree.program, tree.id, prefix="c-")
    at = tree.began_at
    for number in order:
        draft = drafts[number]
        parent = drafts[draft.parent] if draft.parent >= 0 else None
        new = [nodes[index] for index in draft.nodes]
        answer = nodes[draft.answer] if draft.answer >= 0 else None
        at = next((node.at for node in reversed(new) if node.at), (answer.at if answer else 0) or at)
        yield PortableTurn(
            id=ids[number],
            conversation=conversation,
            created_at=at,
            messages=tuple(_message(node, draft.kept + place) for place, node in enumerate(new)),
            answer=_message(answer, 0) if answer else None,
            answered_at=max(answer.at, at) if answer else 0.0,
            # an answer may still come where nothing follows: the next export of that program holds it
            ending=Ending.COMPLETE if answer else Ending.CLIENT_GONE if draft.has_children else None,
            parent=ids[draft.parent] if parent is not None else "",
            kept=((0, 0, draft.kept),) if draft.kept else (),
            role=tree.role,
            event=_event(nodes, draft, parent),
            serves=tree.serves,
            model=next((node.model for node in (answer, *new) if node and node.model), ""),
            client_ids=tree.client_ids,
        )


def _message(node: Node, position: int) -> PortableMessage:
    assert node.raw is not None
    return PortableMessage(position, node.raw, is_summary=node.is_summary)


def _event(nodes: Sequence[Node], draft: _Draft, parent: _Draft | None) -> Event:
    """How a turn continues its parent: start, tool results, append, edit or summary."""
    if any(nodes[at].resets for at in (*draft.nodes, draft.answer) if at >= 0):
        return Event.SUMMARY
    if parent is None:
        return Event.START
    goes_on = draft.kept == parent.kept + len(_added_messages(nodes, parent))
    if draft.nodes and all(_role(nodes[at]) == "tool" for at in draft.nodes):
        return Event.TOOL
    if goes_on and not draft.is_branch:
        return Event.APPEND
    return Event.EDIT if draft.nodes else Event.RETRY
