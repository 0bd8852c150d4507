"""
What stands on disk, and how did it come to stand there? Numbered, append-only migrations.

The journal (`turn`, `occurrence`, `content`) is lossless; everything else is derived from it and can be rebuilt.
"""

from __future__ import annotations

M001 = """
CREATE TABLE tenant (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    public TEXT NOT NULL UNIQUE,            -- what x-palimpsest-conversation shows
    role TEXT NOT NULL,
    parent TEXT NOT NULL DEFAULT '',        -- public id of the conversation it serves
    user TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL
);
CREATE INDEX conversation_by_tenant ON conversation(tenant, user, scope);
CREATE TABLE content (                       -- each message once per tenant, whatever it occurs in
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenant(id),
    digest BLOB NOT NULL,                    -- keyed hash of the message as sent, before redaction
    text TEXT NOT NULL,                      -- its text, redacted
    rest TEXT NOT NULL,                      -- the JSON message without its `content` when that is exactly `text`
    UNIQUE (tenant, digest)
);
CREATE TABLE turn (                          -- one request, as a diff against its parent
    id INTEGER PRIMARY KEY AUTOINCREMENT,    -- journal order
    key TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    parent INTEGER REFERENCES turn(id),
    role TEXT NOT NULL,
    event TEXT NOT NULL,
    kept TEXT NOT NULL,                      -- JSON [[first position, [occurrence ranges]]...]: see sqlite.py
    ending TEXT NOT NULL DEFAULT 'open',
    model TEXT NOT NULL DEFAULT '',
    prompt_tokens INTEGER,
    explain TEXT NOT NULL DEFAULT '{}',
    created_at REAL NOT NULL
);
CREATE INDEX turn_by_conversation ON turn(conversation, id);
CREATE TABLE occurrence (                    -- one message standing in one place of one conversation
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    turn INTEGER NOT NULL REFERENCES turn(id),
    position INTEGER NOT NULL,               -- in the request's whole message list; the answer comes after the last
    content INTEGER NOT NULL REFERENCES content(id),
    full INTEGER NOT NULL,
    opening INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    role TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE INDEX occurrence_by_turn ON occurrence(turn, position);
CREATE INDEX occurrence_by_conversation ON occurrence(conversation, id);
CREATE TABLE head (                          -- newest state of each branch; derived
    turn INTEGER PRIMARY KEY REFERENCES turn(id),
    conversation INTEGER NOT NULL REFERENCES conversation(id),
    listing BLOB NOT NULL,                   -- 4 x n int64: fulls, openings, occurrences, flags
    state TEXT NOT NULL                      -- JSON: shape, request_length, compactions, dropped, event
);
CREATE INDEX head_by_conversation ON head(conversation, turn);
CREATE TABLE link (                          -- what leads a later request back here; derived
    tenant INTEGER NOT NULL,
    print INTEGER NOT NULL,
    kind TEXT NOT NULL,
    conversation INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    PRIMARY KEY (tenant, print, kind, conversation)
) WITHOUT ROWID;
CREATE INDEX link_by_conversation ON link(conversation);
CREATE TABLE block (                         -- what we said, anchored to what it was said in
    occurrence INTEGER PRIMARY KEY REFERENCES occurrence(id),
    conversation INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    occurrences TEXT NOT NULL,               -- JSON: the memories it carries
    shed INTEGER NOT NULL DEFAULT 0          -- 1: no longer replayed
);
CREATE INDEX block_by_conversation ON block(conversation);
CREATE TABLE memory (                        -- one findable passage of one occurrence; derived
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    occurrence INTEGER NOT NULL REFERENCES occurrence(id),
    start INTEGER NOT NULL,                  -- characters into content.text
    stop INTEGER NOT NULL,
    tags TEXT NOT NULL DEFAULT '',           -- space-joined, see core/digest.py
    kind TEXT NOT NULL DEFAULT 'episodic',
    leased_until REAL NOT NULL DEFAULT 0     -- by the worker that indexes it, Unix seconds
);
CREATE INDEX memory_by_occurrence ON memory(occurrence);
CREATE INDEX memory_by_conversation ON memory(conversation, id);
CREATE INDEX memory_by_tenant ON memory(tenant, id);
CREATE TABLE vector (                        -- derived; follows memory
    memory INTEGER PRIMARY KEY REFERENCES memory(id),
    model TEXT NOT NULL,
    own BLOB NOT NULL                        -- float16, unit length
);
CREATE TABLE term (                          -- document frequency per tenant, for BM25; derived
    tenant INTEGER NOT NULL,
    term TEXT NOT NULL,
    memories INTEGER NOT NULL,
    PRIMARY KEY (tenant, term)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE memory_text USING fts5(tokens, tokenize = 'unicode61 remove_diacritics 0');
"""
