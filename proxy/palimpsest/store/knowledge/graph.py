"""
The graph of long-term memory as rows: nodes and edges of a tenant, and the items that each edge follows from.

An edge says nothing of whose items these are; who asks for edges is given their evidence to decide what may be seen.
Evidence that is retired, or superseded by a newer value, does not count; what was evicted for room does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from palimpsest.core.consolidation.relations import Edge, Node, is_hidden, names_of
from palimpsest.core.consolidation.strength import Evidence
from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.knowledge.items import HIDDEN

ADD_NODE = "INSERT INTO node(tenant, kind, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
# INNER: by the names of both nodes, and never through all edges of a tenant.
ENDS = """
node AS a INNER JOIN node AS b ON b.tenant = a.tenant AND b.kind = ?5 AND b.name = ?6
"""
THESE = "a.tenant = ?1 AND a.kind = ?3 AND a.name = ?4"
ADD_EDGE = f"""
INSERT INTO edge(tenant, source, relation, target) SELECT a.tenant, a.id, ?2, b.id FROM {ENDS} WHERE {THESE}
ON CONFLICT DO NOTHING
"""
ADD_EVIDENCE = f"""
INSERT INTO edge_evidence(tenant, edge, item) SELECT edge.tenant, edge.id, ?7 FROM {ENDS}
INNER JOIN edge ON edge.tenant = a.tenant AND edge.source = a.id AND edge.relation = ?2 AND edge.target = b.id
WHERE {THESE} ON CONFLICT DO NOTHING
"""
EVIDENCE = f"""
SELECT edge.id, edge.relation, a.kind, a.name, b.kind, b.name, conversation.user_id, conversation.id, item.said_at
FROM edge JOIN node AS a ON a.id = edge.source JOIN node AS b ON b.id = edge.target
JOIN edge_evidence ON edge_evidence.edge = edge.id JOIN item ON item.id = edge_evidence.item
JOIN conversation ON conversation.id = item.conversation
WHERE edge.tenant = ?1 AND item.state <> 'superseded' AND NOT {HIDDEN.format(item="item.id")}
ORDER BY edge.id, item.id
"""
OF_ITEMS = """
SELECT edge_evidence.item, edge.relation, a.kind, a.name, b.kind, b.name
FROM numbers(?) AS asked INNER JOIN edge_evidence ON edge_evidence.item = asked.value
JOIN edge ON edge.id = edge_evidence.edge JOIN node AS a ON a.id = edge.source JOIN node AS b ON b.id = edge.target
"""
UNUSED_EDGES = "DELETE FROM edge WHERE tenant = ? AND NOT EXISTS (SELECT 1 FROM edge_evidence WHERE edge = edge.id)"
UNUSED_NODES = """
DELETE FROM node WHERE tenant = ? AND NOT EXISTS (SELECT 1 FROM edge WHERE source = node.id)
    AND NOT EXISTS (SELECT 1 FROM edge WHERE target = node.id)
"""
PEOPLE = "SELECT DISTINCT user_id FROM conversation WHERE tenant = ? AND user_id <> ''"
SPEAKERS = "SELECT DISTINCT tags FROM memory WHERE tenant = ? AND (tags LIKE '%: %' OR tags LIKE '%:')"


@frozen
class StoredEdge:
    """An edge and what speaks for it."""

    id: int
    edge: Edge
    evidence: tuple[Evidence, ...]


def edges_of_tenant(ask: Ask, tenant: int) -> list[StoredEdge]:
    """All edges of a tenant that some item states, without those that name a user."""
    people = frozenset(part for user in users_of(ask, tenant) for part in names_of(user))
    found = [
        StoredEdge(id, _edge(*told), tuple(Evidence(*row[6:]) for row in rows))
        for (id, *told), rows in groupby(ask(EVIDENCE, (tenant,)), key=lambda row: row[:6])
    ]
    return [stored for stored in found if not any(is_hidden(node, people) for node in stored.edge.nodes)]


def edges_of_items(ask: Ask, items: Iterable[int]) -> Mapping[int, frozenset[Edge]]:
    """By item, the edges that it speaks for; items without any are left out."""
    found: dict[int, set[Edge]] = {}
    for item, *told in ask(OF_ITEMS, (ids(items),)):
        found.setdefault(item, set()).add(_edge(*told))
    return {item: frozenset(edges) for item, edges in found.items()}


def relate(transaction: Transaction, tenant: int, related: Mapping[int, Collection[Edge]]) -> None:
    """Set the edges that items, by id, state, and remove all others of theirs."""
    edges = {edge for some in related.values() for edge in some}
    nodes = {node for edge in edges for node in edge.nodes}
    transaction.write("DELETE FROM edge_evidence WHERE item = ?", [(item,) for item in related])
    transaction.write(ADD_NODE, [(tenant, node.kind, node.name) for node in nodes])
    transaction.write(ADD_EDGE, [_edge_names(tenant, edge) for edge in edges])
    spoken_for = [(*_edge_names(tenant, edge), item) for item, some in related.items() for edge in some]
    transaction.write(ADD_EVIDENCE, spoken_for)


def forget_unused(transaction: Transaction, tenant: int) -> None:
    """Remove edges that no item speaks for, and nodes without edges."""
    transaction.write(UNUSED_EDGES, [(tenant,)])
    transaction.write(UNUSED_NODES, [(tenant,)])


def users_of(ask: Ask, tenant: int) -> list[str]:
    """Names or ids of a tenant's users."""
    return [user for (user,) in ask(PEOPLE, (tenant,))]


def speakers_of(ask: Ask, tenant: int) -> list[str]:
    """Names that messages of a tenant open with, as transcripts do, in small letters."""
    found = {tag for (tags,) in ask(SPEAKERS, (tenant,)) for tag in tags.split() if tag.endswith(":")}
    return sorted(tag.removesuffix(":") for tag in found)


def _edge(relation: str, *ends: str) -> Edge:
    kind, name, other_kind, other_name = ends
    return Edge(Node(kind, name), relation, Node(other_kind, other_name))  # type: ignore[arg-type]


def edge_count(ask: Ask) -> int:
    """How many edges there are, of all tenants."""
    return int(ask("SELECT count(*) FROM edge")[0][0])


def _edge_names(tenant: int, edge: Edge) -> tuple[object, ...]:
    return (tenant, edge.relation, edge.source.kind, edge.source.name, edge.target.kind, edge.target.name)
