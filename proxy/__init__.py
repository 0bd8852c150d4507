"""
Palimpsest: a transparent proxy that gives any LLM application durable memory.

The map of the house; imports point down only (`scripts/check` asks import-linter):

    commands/               the command line: serve, wrap, doctor, demo, explain, forget, bench ...
    evaluation/             benchmarks: what memory is worth, measured
    app                     the only place that joins ports to adapters
    edge/                   HTTP: the proxied paths, the endpoints of the proxy itself
    pipeline                one request, from its body to what is forwarded
    memory/                 services: recall, archiving, forgetting, supervised background work
    scripted/               a provider that follows a script, for tests, demo and benchmarks
    index/                  search by words and by meaning, in memory, over what is stored
    store/                  adapter: SQLite; all SQL stands here
    embedding/ tokens/      adapters: the embedding model; counts and windows of models
    upstream/               adapters: providers
    core/                   decisions as pure functions: no I/O, no clock
    wire/                   the wires of clients, parsed and extended byte by byte; as pure
    settings/               the policy tree, and how it is read
    logs terminal metrics   what the operator sees
    ports domain errors     the vocabulary of all of them

A request walks: `edge/proxy_routes` -> `pipeline` -> `wire/chat` -> `core/caller/identity` ->
`core/conversation`, which asks the pipeline for its look-ups (`core/history/lineage` -> `core/recall/diagnosis` ->
`memory/recall` -> `core/block/packing`) -> `upstream/passthrough`, and back through `wire/sse` to `memory/archivist`.
"""

import os

__version__ = "0.1.0"

# Said before anything else of ours can be imported, and to every process that we start: with the import of ONNX Runtime
# it would be too late, as that gives the machine a lasting id and sends events to Microsoft from then on.
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")
