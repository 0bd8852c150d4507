"""
Is everything in place, and what is to be done where it is not? The checks behind `palimpsest doctor`.

    examination     which checks there are, in which order
    disk            folder, secret, database, space
    machine         model, tokenizers, port, admin token
    providers       upstreams, credentials, clock
    report          how findings look, in a terminal and to a program
    finding         the word that all of them speak in

Nothing is made, changed or sent but what the proxy does at its start, and a list of models asked for.
"""
