"""
Palimpsest: a transparent proxy that gives any LLM application durable memory.

The map of the house; imports point down only (`scripts/check` asks import-linter):

    app, cli, serving,      5  entry: the only place that joins ports to adapters; the commands,
    settings, wrap, demo ...   their settings, their words in the terminal and the log;
    doctor/ evaluation/        what is in place; what memory is worth, measured: maps of their own
    edge/                   4  HTTP routes: the proxied paths, the operator's paths
    pipeline, recall,       3  services: one request in one paragraph; ask the indexes;
    archivist, readers,        overhear, journal, index in the background;
    supervision, forgetting    erase on request, and prove it
    store/ index/ upstream/ 2  adapters: SQLite, vectors and text, the provider
    core/ wire/             1  pure: values in, decisions out; no I/O, no clock
    domain errors policy    0  vocabulary: what everything above speaks in
    ports metrics

A request walks: `edge/proxy_routes` -> `pipeline` -> `wire/chat` -> `core/identity` ->
`core/lineage` -> `core/diagnose` -> `recall` -> `core/packing` -> `upstream/passthrough`,
and back through `wire/sse` to `archivist`.
"""

import os

__version__ = "0.1.0"

# Said before anything else of ours can be imported, and to every process that we start: with the import of ONNX Runtime
# it would be too late, as that gives the machine a lasting id and sends events to Microsoft from then on.
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")
