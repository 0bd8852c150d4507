"""
Endurance runs: the real proxy in processes of its own, a scripted upstream, and a ledger of what clients received.

    python -m scripts.endure forget | kill | rolling | reload | soak [--help]

Each prints a table, and ends with status 1 where something failed. A run is a module with `configure` and `run`.
"""
