"""
Fuzzed requests on all wires and encodings, compared at the upstream with what the client sent.

    python -m scripts.fuzz [--bodies N] [--help]

Where memory adds nothing, the bytes have to be equal, as encoded; where it adds a block, the decoded body has to be
what the client sent, but for the block. Most bodies go through `wire` alone, others through the routes and memory in
one process, and some through real sockets and a running proxy; the table says how many. Status 1 where one was changed.
"""
