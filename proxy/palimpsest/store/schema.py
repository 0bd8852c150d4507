"""
The tables.

The journal (`tenant` to `block`, and `cost`) is lossless. What is derived from it can be made again: passages (`memory`
to `term`), items and the graph (`item` to `edge_evidence`), and the facts that messages state.
No id is ever given twice (AUTOINCREMENT): a late reader of a removed row finds nothing, never somebody else's.
No column has a name that SQL reserves.
"""

from __future__ import annotations

JOURNAL = r"""
CREATE TABLE tenant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    public TEXT NOT NULL,                    -- what x-palimpsest-conversation shows; unique inside its tenant only
    role TEXT NOT NULL,
    parent TEXT NOT NULL DEFAULT '',         -- public id of the conversation it serves
    user_id TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL DEFAULT '',
    folder INTEGER NOT NULL DEFAULT 0,       -- keyed hash of its agent's folder; < 0 of its prompt; 0 of neither
    created_at REAL NOT NULL,
    cleared INTEGER NOT NULL DEFAULT 0,      -- its last occurrence when its user cleared it
    cleared_at REAL NOT NULL DEFAULT 0,      -- Unix seconds
    UNIQUE (tenant, public)
);
CREATE INDEX conversation_by_user ON conversation(tenant, user_id, scope);
CREATE INDEX conversation_by_folder ON conversation(tenant, folder) WHERE folder <> 0;
CREATE INDEX conversation_cleared ON conversation(tenant) WHERE cleared > 0;
CREATE TABLE content (                       -- each message once per tenant, whatever it occurs in
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    digest BLOB NOT NULL,                    -- keyed hash of the message as sent, before redaction
    text TEXT NOT NULL,                      -- what it says and does, readable and redacted
    rest TEXT NOT NULL,                      -- its JSON without what `text` already says: see wire/storage_codec.py
    UNIQUE (tenant, digest)
);
CREATE TABLE turn (                          -- one request, as a diff against its parent
    id INTEGER PRIMARY KEY AUTOINCREMENT,    -- journal order
    tenant INTEGER NOT NULL,
    key TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    parent INTEGER REFERENCES turn(id),
    role TEXT NOT NULL,
    event TEXT NOT NULL,
    kept TEXT NOT NULL,                      -- which messages of the parent it carries: see store/turns/diffs.py
    messages INTEGER NOT NULL,               -- length of its whole message list; the answer's position
    ending TEXT NOT NULL DEFAULT 'open',
    model TEXT NOT NULL DEFAULT '',
    prompt_tokens INTEGER,
    explain TEXT NOT NULL DEFAULT '{}',
    created_at REAL NOT NULL
);
CREATE INDEX turn_by_conversation ON turn(conversation, id);
CREATE INDEX turn_by_parent ON turn(parent) WHERE parent IS NOT NULL;
CREATE TABLE occurrence (                    -- one message standing in one place of one conversation
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    turn INTEGER NOT NULL REFERENCES turn(id),
    position INTEGER NOT NULL,               -- in the request's whole message list; the answer comes after the last
    content INTEGER NOT NULL REFERENCES content(id),
    fingerprint INTEGER NOT NULL,            -- of the message: wire/fingerprint.py
    opening INTEGER NOT NULL,                -- the same of how it begins
    flags INTEGER NOT NULL,
    role TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE INDEX occurrence_by_turn ON occurrence(turn, position);
CREATE INDEX occurrence_by_conversation ON occurrence(conversation, id);
CREATE INDEX occurrence_by_content ON occurrence(content);
CREATE TABLE head (                          -- newest state of each branch
    turn INTEGER PRIMARY KEY REFERENCES turn(id),
    tenant INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    replaces INTEGER NOT NULL,               -- the turn whose head goes when this one has its answer; 0 none
    state TEXT NOT NULL,                     -- JSON: what else `Head` says
    lost BLOB NOT NULL,                      -- int64 occurrences
    base INTEGER NOT NULL DEFAULT 0,         -- `listing.turn` of its beginning; 0 it has none
    listing BLOB NOT NULL                    -- n x 4 int64: fingerprint, opening, occurrence, flags; then the answer's
);
CREATE INDEX head_by_conversation ON head(conversation, turn);
CREATE TABLE listing (                       -- how the listings of heads begin, shared by those of one branch
    turn INTEGER PRIMARY KEY,                -- whose head it was written for
    tenant INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    rows BLOB NOT NULL                       -- as `head.listing`, which goes on behind it
);
CREATE INDEX listing_by_conversation ON listing(conversation);
CREATE TABLE link (                          -- what leads a later request back here
    tenant INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    kind TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    turn INTEGER NOT NULL REFERENCES turn(id),
    PRIMARY KEY (tenant, fingerprint, conversation, kind, turn)
) WITHOUT ROWID;
CREATE INDEX link_by_turn ON link(turn);
CREATE INDEX link_by_conversation ON link(conversation);
CREATE TABLE block (                         -- what we said, anchored to what it was said in
    occurrence INTEGER PRIMARY KEY REFERENCES occurrence(id),
    tenant INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    turn INTEGER NOT NULL REFERENCES turn(id),
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    role TEXT NOT NULL,                      -- of a message of its own; '' inside the one that carries it
    tokens INTEGER NOT NULL,
    occurrences TEXT NOT NULL,               -- JSON: the memories it carries
    shed INTEGER NOT NULL DEFAULT 0,         -- the turn since which it is no longer replayed; 0 it is
    retired INTEGER NOT NULL DEFAULT 0,      -- quotes what this one retired: not replayed; 0 it is
    facts TEXT NOT NULL DEFAULT '[]'         -- JSON: told in it, [id, message that states it or 0]
);
CREATE INDEX block_by_conversation ON block(conversation);
CREATE INDEX block_by_turn ON block(turn);
CREATE TABLE memory (                        -- one findable passage of one occurrence
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    occurrence INTEGER NOT NULL REFERENCES occurrence(id),
    start INTEGER NOT NULL,                  -- characters into content.text
    stop INTEGER NOT NULL,
    tags TEXT NOT NULL DEFAULT '',           -- space-joined, see core/archive/chunking.py
    kind TEXT NOT NULL DEFAULT 'episodic'
);
CREATE INDEX memory_by_occurrence ON memory(occurrence);
CREATE INDEX memory_by_conversation ON memory(conversation, id);
CREATE INDEX memory_by_tenant ON memory(tenant, id);
CREATE TABLE unindexed (                     -- memories that wait for a vector
    memory INTEGER PRIMARY KEY REFERENCES memory(id),
    tenant INTEGER NOT NULL,
    worker TEXT NOT NULL DEFAULT '',
    leased_until REAL NOT NULL DEFAULT 0     -- by that worker, Unix seconds
);
CREATE TABLE vector (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    memory INTEGER NOT NULL UNIQUE REFERENCES memory(id),
    model TEXT NOT NULL,
    own BLOB NOT NULL                        -- float16, unit length
);
CREATE INDEX vector_by_model ON vector(model);
CREATE TABLE forgotten (                     -- memories whose vector or scope changed: caches look at them again
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    memory INTEGER NOT NULL
);
CREATE TABLE reminder (                      -- passages that somebody wants in the next request of their conversation
    memory INTEGER PRIMARY KEY REFERENCES memory(id) ON DELETE CASCADE,
    tenant INTEGER NOT NULL,
    until REAL NOT NULL,                     -- Unix seconds, when it waits no longer
    turn INTEGER NOT NULL DEFAULT 0          -- that it came in; 0: it waits
);
CREATE TABLE term (                          -- document frequency per tenant, for BM25
    tenant INTEGER NOT NULL,
    term TEXT NOT NULL,
    memories INTEGER NOT NULL,
    PRIMARY KEY (tenant, term)
) WITHOUT ROWID;
CREATE TABLE task (                          -- work that outlives a process: where it stands
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL,
    stop INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE cost (                          -- of one request, written with its answer; goes with its turn
    turn INTEGER PRIMARY KEY REFERENCES turn(id) ON DELETE CASCADE,
    tenant INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    at REAL NOT NULL,                        -- of the request: `turn.created_at`, which stands behind long columns
    own_tokens INTEGER NOT NULL,             -- that the client itself sent, by our count, as are the next two
    added_tokens INTEGER NOT NULL,
    repeated_tokens INTEGER NOT NULL,        -- of those: blocks of before
    input_tokens INTEGER,                    -- as the provider counts, as do the next three; NULL: it does not say
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    rebuild TEXT,                            -- see domain/costs.py; NULL: it cannot be told
    rebuilt_tokens INTEGER
);
CREATE INDEX cost_by_conversation ON cost(conversation, at);
CREATE INDEX cost_by_time ON cost(at);
CREATE TABLE quarantine (                    -- what could not be stored, without a word of it, nor whose it was
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    turn TEXT NOT NULL,                      -- its key; in `turn` only where it was the answer that was set aside
    part TEXT NOT NULL,                      -- 'request' or 'answer'
    reason TEXT NOT NULL,
    chars INTEGER NOT NULL,                  -- how much was said in it
    digest BLOB NOT NULL,                    -- keyed hash: the same content set aside twice is known for it
    created_at REAL NOT NULL
);
"""

# What is left of what was erased, and what is retired and may be taken back.
ERASURE = r"""
CREATE TABLE erased (                        -- fingerprints of what was erased: a resend is not kept again
    fingerprint INTEGER NOT NULL,
    after INTEGER NOT NULL,                  -- fingerprint of the message in front of it; 0 none
    conversation INTEGER NOT NULL,           -- keyed hash: core/archive/tombstones.scope_print
    opening INTEGER NOT NULL,
    at REAL NOT NULL,
    retirement INTEGER NOT NULL DEFAULT 0,   -- 0: erased; else only retired, by this one
    PRIMARY KEY (fingerprint, after, conversation)
) WITHOUT ROWID;
CREATE INDEX erased_by_opening ON erased(opening);
CREATE TABLE erased_scope (                  -- whose past was erased: requests that came before it leave no text either
    fingerprint INTEGER PRIMARY KEY,         -- keyed hash, as above
    at REAL NOT NULL
);
CREATE TABLE erasure (                       -- one row for each; caches in every worker read on from here
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL
);
CREATE TABLE retirement (                    -- what is out of use and may be taken back into it until a day
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,                -- id of the receipt
    tenant INTEGER NOT NULL,                 -- row; 0: several
    at REAL NOT NULL,
    until REAL NOT NULL                      -- erased after this
);
CREATE TABLE retired (                       -- messages that are stored, but neither recalled nor found
    occurrence INTEGER PRIMARY KEY REFERENCES occurrence(id) ON DELETE CASCADE,
    tenant INTEGER NOT NULL,
    retirement INTEGER NOT NULL REFERENCES retirement(id),
    memory INTEGER NOT NULL                  -- the first of its passages as it was; 0 it had none
);
CREATE INDEX retired_by_retirement ON retired(retirement);
CREATE TABLE retired_scope (                 -- whose past was retired: requests that came before it are, too
    fingerprint INTEGER PRIMARY KEY,         -- keyed hash, as in `erased_scope`
    retirement INTEGER NOT NULL REFERENCES retirement(id),
    at REAL NOT NULL
);
"""

# What an operator changes while processes run, what tells them so, and what is counted.
OPERATION = r"""
CREATE TABLE change (                        -- counters that every process follows: see store/operation/changes.py
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE secret_mark (                   -- of the secret that keyed all hashes here: store/engine/secret_mark.py
    one INTEGER PRIMARY KEY,
    digest BLOB NOT NULL
);
CREATE TABLE proxy_key (                     -- keys that callers present; none of them stands here
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,             -- SHA-256 of the key
    shown TEXT NOT NULL,                     -- its first characters
    name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    users TEXT NOT NULL,                     -- JSON: the names that it may use; [] any
    scopes TEXT NOT NULL,                    -- the same of projects
    read_only INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,                         -- NULL never
    revoked_at REAL
);
CREATE TABLE switch (                        -- for whom memory is switched off
    tenant TEXT PRIMARY KEY,                 -- '' everybody
    reason TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE policy (                        -- the policies that were in force, the newest last
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE assist_usage (                  -- what language models used in each role of memory, by day
    day TEXT NOT NULL,                       -- UTC, as 2026-11-22
    role TEXT NOT NULL,
    tenant INTEGER NOT NULL,                 -- its row's id; 0: nothing of it was archived yet
    calls INTEGER NOT NULL,
    failures INTEGER NOT NULL,               -- of the calls
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    dollars REAL NOT NULL,
    PRIMARY KEY (day, role, tenant)
) WITHOUT ROWID;
CREATE TABLE model_note (                    -- what upstreams have shown of models: store/operation/model_notes.py
    upstream TEXT NOT NULL,                  -- '' any
    model TEXT NOT NULL,                     -- as clients name it
    source TEXT NOT NULL,                    -- 'refusal' or 'list', of a window; 'usage', of a ratio
    value REAL NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (upstream, model)
) WITHOUT ROWID;
CREATE TABLE ended_session (                 -- sessions of the page that ended early: store/operation/ended_sessions.py
    name TEXT PRIMARY KEY,                   -- of one, or a keyed hash of the token or key that some were begun with
    until REAL NOT NULL                      -- those that would be good until then, Unix seconds, or shorter
) WITHOUT ROWID;
CREATE TABLE probe (                         -- questions that memory asked itself, the newest ones
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    stage TEXT NOT NULL                      -- at which the answer got lost; 'found' it was not
);
"""

# What writers keep of conversations, what became of it, and the relations that follow from it.
ITEMS = r"""
CREATE TABLE item (                          -- what a writer keeps of a conversation: mid-term memory
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    writer TEXT NOT NULL,                    -- its name and version
    text TEXT NOT NULL,
    question TEXT NOT NULL,                  -- what it answers; '' not said
    topic TEXT NOT NULL,                     -- what it is about; '' not said
    said_at REAL NOT NULL,                   -- when the newest of its sources was said, Unix seconds
    created_at REAL NOT NULL,
    used_at REAL NOT NULL,                   -- when it last led to a passage that was recalled
    uses INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'current',   -- or 'merged', 'superseded', 'evicted'
    heir INTEGER NOT NULL DEFAULT 0,         -- the item that stands for this one; 0 none
    judged INTEGER NOT NULL DEFAULT 0,       -- it was compared with all newer items up to this id
    related INTEGER NOT NULL DEFAULT 0       -- version of the rules that took relations from it; 0 none did
);
CREATE INDEX item_by_conversation ON item(conversation, id);
CREATE INDEX item_by_tenant ON item(tenant, id);
CREATE INDEX item_by_heir ON item(heir) WHERE heir <> 0;
CREATE TABLE item_source (                   -- where it was said
    tenant INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES item(id),
    occurrence INTEGER NOT NULL REFERENCES occurrence(id),
    start INTEGER NOT NULL,                  -- characters into content.text
    stop INTEGER NOT NULL,
    PRIMARY KEY (item, occurrence, start, stop)
) WITHOUT ROWID;
CREATE INDEX item_source_by_occurrence ON item_source(occurrence);
CREATE TABLE item_vector (
    item INTEGER PRIMARY KEY REFERENCES item(id),
    tenant INTEGER NOT NULL,
    model TEXT NOT NULL,
    own BLOB NOT NULL                        -- float16, unit length
);
CREATE TABLE item_progress (                 -- how far the writer of items has read a conversation
    conversation INTEGER PRIMARY KEY REFERENCES conversation(id),
    tenant INTEGER NOT NULL,
    through INTEGER NOT NULL,                -- occurrence
    worker TEXT NOT NULL DEFAULT '',
    leased_until REAL NOT NULL DEFAULT 0     -- by that worker, Unix seconds
);
CREATE TABLE consolidation (                 -- one run that changed something
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    tenant INTEGER NOT NULL,                 -- row; 0: several
    at REAL NOT NULL,
    undone_at REAL NOT NULL DEFAULT 0        -- 0: it stands
);
CREATE TABLE consolidation_step (            -- what it did to an item, and why
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES consolidation(id),
    item INTEGER NOT NULL REFERENCES item(id),
    heir INTEGER NOT NULL,                   -- the item that stands for it from then on; 0 none
    what TEXT NOT NULL,                      -- 'merged', 'superseded' or 'evicted'
    why TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX consolidation_step_by_run ON consolidation_step(run, id);
CREATE INDEX consolidation_step_by_item ON consolidation_step(item);
CREATE TABLE node (                          -- long-term memory: what is spoken of, without who spoke
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    kind TEXT NOT NULL,                      -- 'entity' or 'concept'
    name TEXT NOT NULL,
    UNIQUE (tenant, kind, name)
);
CREATE TABLE edge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    source INTEGER NOT NULL REFERENCES node(id),
    relation TEXT NOT NULL,                  -- 'is-a', 'has-property', 'related-to' or 'implies'
    target INTEGER NOT NULL REFERENCES node(id),
    UNIQUE (tenant, source, relation, target)
);
CREATE INDEX edge_by_target ON edge(target);
CREATE TABLE edge_evidence (                 -- the items that an edge follows from
    tenant INTEGER NOT NULL,
    edge INTEGER NOT NULL REFERENCES edge(id),
    item INTEGER NOT NULL REFERENCES item(id),
    PRIMARY KEY (edge, item)
) WITHOUT ROWID;
CREATE INDEX edge_evidence_by_item ON edge_evidence(item);
"""

# Facts that messages state and tools were told.
FACTS = r"""
CREATE TABLE fact (                          -- what a message states, or a tool was told; never superseded here
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    public TEXT NOT NULL,                    -- what names it outside
    conversation INTEGER REFERENCES conversation(id) ON DELETE CASCADE,  -- of its source; NULL: told by a tool
    occurrence INTEGER REFERENCES occurrence(id) ON DELETE CASCADE,      -- its source, likewise
    start INTEGER NOT NULL DEFAULT 0,        -- characters into content.text
    stop INTEGER NOT NULL DEFAULT 0,
    extractor INTEGER NOT NULL DEFAULT 0,    -- its version
    user_id TEXT NOT NULL DEFAULT '',        -- of one that was told; others are their conversation's
    scope TEXT NOT NULL DEFAULT '',          -- likewise
    tool TEXT NOT NULL DEFAULT '',           -- that it was told with
    who TEXT NOT NULL DEFAULT '',            -- the program that did
    subject TEXT NOT NULL,
    slot TEXT NOT NULL,
    value TEXT NOT NULL,
    category TEXT NOT NULL,
    single INTEGER NOT NULL,                 -- the slot has one value at a time
    confidence REAL NOT NULL,
    said_at REAL NOT NULL,
    valid_from REAL,                         -- NULL: since ever
    valid_until REAL,                        -- NULL: until further notice
    pinned INTEGER NOT NULL DEFAULT 0,
    retirement INTEGER NOT NULL DEFAULT 0,   -- that took it out of use, 1 with its message; 0 none
    place INTEGER NOT NULL,                  -- keyed hash: core/facts/marks.py
    superseded INTEGER NOT NULL DEFAULT 0    -- a newer one stands in its place: store/families/facts.py
);
CREATE INDEX fact_by_conversation ON fact(conversation, place, said_at);
CREATE INDEX fact_by_occurrence ON fact(occurrence);
CREATE INDEX fact_by_person ON fact(tenant, user_id, scope) WHERE occurrence IS NULL;
CREATE INDEX fact_by_public ON fact(tenant, public);
CREATE INDEX fact_in_place ON fact(tenant, user_id, scope, place, said_at);
CREATE INDEX fact_standing ON fact(tenant, user_id, scope, said_at) WHERE superseded = 0 AND retirement = 0;
CREATE INDEX fact_pinned ON fact(tenant, user_id, scope) WHERE pinned <> 0;
CREATE INDEX fact_beginning ON fact(tenant, valid_from) WHERE valid_from IS NOT NULL;
CREATE TABLE fact_forgotten (                -- facts that no message states any more: see core/facts/marks.py
    mark INTEGER PRIMARY KEY,                -- keyed hash
    at REAL NOT NULL
);
"""

OF_NO_TENANT = {
    **dict.fromkeys(
        ("change", "policy", "switch", "proxy_key", "secret_mark", "task", "probe", "assist_usage", "model_note"),
        "of the operator, for all processes",
    ),
    "ended_session": "hashes and names made by chance, for all processes",
    "tenant": "says who there is",
    **dict.fromkeys(
        ("erased", "erased_scope", "retired_scope", "fact_forgotten"),
        "hashes under the key of a tenant, beside no name",
    ),
    **dict.fromkeys(("retirement", "consolidation"), "what was done, perhaps to several tenants at once"),
    "erasure": "numbers that tell caches of all tenants to look again",
    "forgotten": "likewise, with ids of passages",
    "quarantine": "says nothing of whose it was",
}
"""Tables whose rows belong to no tenant, and why. Every other has a column `tenant`."""

SCHEMA = JOURNAL + ERASURE + OPERATION + ITEMS + FACTS
