"""
The checks behind `palimpsest doctor`, each with what was found and what to do about it.

    examination     which checks there are, in which order
    disk            folder, secret, database, space
    server          the machine that keeps the memory, where another one does
    machine         model, tokenizers, port, admin token
    clients         settings of clients, and base URLs that lead to nobody
    providers       upstreams, credentials, clock
    finding         the value that every check returns, and the report of all of them

Nothing is made, changed or sent but what the proxy does at its start, and a list of models asked for.
"""
