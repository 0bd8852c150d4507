"""
Palimpsest: a transparent proxy that gives any LLM application durable memory.

The map, top down: a file imports only from its own line and from those below (`scripts/check`).

    __main__ commands/      the command line: serve, wrap, doctor, demo, explain, forget, bench ...
    evaluation/             benchmarks of recall and compaction
    app                     the composition root: joins all parts and opens and closes them
    features/               what may be switched on or off: facts, items, gaps, models that help, MCP, the page, files
    console/                what commands are made of: arguments, output, the archive of a data folder
    edge/                   HTTP: the proxied paths, and the proxy's own endpoints
    pipeline                the preparation of one request, from its body to what is forwarded
    remote/                 the same where another machine keeps the memory: the link, and the turns that wait for it
    memory/                 services: reading, recall, archiving, indexing, forgetting, supervised background work
    store/                  what is stored; all SQL is here, and engine/ has the databases: SQLite and PostgreSQL
    upstream/               connections to providers
    core/                   decisions as pure functions: no I/O, no clock
    wire/                   the clients' APIs, parsed and extended byte by byte; pure as well
    telemetry/              the log, metrics, and traces where variables of OpenTelemetry ask for them
    settings/               the policy, and how it is loaded
    domain/                 value types, interfaces and errors that all of them share

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
