"""Baselines: other memories, each in a file that names its paper. `BASELINES` in `known.py` lists them."""
