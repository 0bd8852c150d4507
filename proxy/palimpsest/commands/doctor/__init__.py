"""
The checks behind `palimpsest doctor`, each with what was found and what to do about it.

    examination     which checks there are, in which order
    disk            folder, secret, database, space
    machine         model, tokenizers, port, admin token
    claude_code     what Claude Code makes of the proxy's address
    clients         settings of clients
    base_urls       base URLs that lead to nobody
    providers       upstreams, credentials, clock
    report          how findings look, in a terminal and to a program
    finding         the value that every check returns

Nothing is made, changed or sent but what the proxy does at its start, and a list of models asked for.
"""
