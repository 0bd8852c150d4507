"""
Palimpsest: a transparent proxy that gives any LLM application durable memory.

The map, top down: a file imports only from its own line and from those below (`scripts/check`).

    __main__ commands/      the command line: serve, wrap, doctor, demo, explain, forget, bench ...
    evaluation/             benchmarks of recall and compaction
    app                     the composition root: joins all parts and opens and closes them
    mcp/                    memory as tools of the Model Context Protocol
    edge/                   HTTP: the proxied paths, and the proxy's own endpoints
    pipeline                the preparation of one request, from its body to what is forwarded
    memory/                 services: reading, recall, archiving, indexing, forgetting, supervised background work
    scripted/               a provider that follows a script, for tests, demo and benchmarks
    assist/                 language models that help memory, where the policy names some
    index/                  search by words and by meaning, in memory, over what is stored
    store/                  what is stored; all SQL is here, and in engine/ the database, SQLite
    embedding/ tokens/      the embedding model; token counts and context windows
    upstream/               connections to providers
    transfer/               files of conversations: our export format, and those of other programs
    core/                   decisions as pure functions: no I/O, no clock
    wire/                   the clients' APIs, parsed and extended byte by byte; pure as well
    settings/               the policy, and how it is loaded
    logs terminal metrics   output for the operator
    tracing/                spans by OpenTelemetry's conventions, where its variables ask for them
    ports domain/ errors    interfaces, value types and errors that all of them share

A request walks from `edge/proxy_routes` to `pipeline`, which reads it (`memory/request/request_reader`, `wire/chat`),
drives its decisions (`core/conversation`) with look-ups in `store/journal` and `memory/recall/recall`, and passes it on
to `upstream/passthrough`. The answer comes back through `wire/response_tap`, and a copy goes to
`memory/recording/archivist`, which has it written by a process of its own (`memory/recording/archive_process`). The
whole walk is in `docs/architecture.md`.
"""

import os

__version__ = "0.1.0"

# Set before any of our modules is imported, and inherited by every process that we start. ONNX Runtime reads it when it
# is imported; without it, it gives the machine a lasting id and sends events to Microsoft.
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")
