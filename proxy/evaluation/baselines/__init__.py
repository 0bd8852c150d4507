"""Which other memories are compared? One a file, each by its paper; `BASELINES` in `known.py` names them."""
