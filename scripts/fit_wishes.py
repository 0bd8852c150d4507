#!/usr/bin/env python3
"""
Fit the weights of `proxy/palimpsest/core/recall/wishes.py` again, and check them with each set left out.

    scripts/fit_wishes.py TEXTS... [--everyday FILE ...] [--talks FOLDER ...]

A line of a file of TEXTS begins with `+` where the text is a lasting wish, with `-` where it is none; of everyday sets
the facts of the kind `instruction` are wishes; of talks 300 short messages of users are read, none of which is one.
Printed: of each set, fitted without it, how many wishes are found and how many other texts are taken for one; then the
weights, to be put into the file by hand. Run it with the environment's Python.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
from palimpsest.core.recall.utterance import STATEMENT_CHARS
from palimpsest.core.recall.wishes import LEAST_ODDS, WEIGHTS, form, is_material
from palimpsest.evaluation.datasets import read
from scipy.optimize import minimize

RIDGE = 5e-4
OF_TALKS = 300  # messages
WISH_WEIGHT = 4.0  # of a wish beside another text: few texts are wishes
TALK_WEIGHT = 0.5  # of a message of a talk beside a text that was written to be mistaken
LEAST_CHARS = 10

Texts = list[tuple[str, bool]]


def labelled(path: Path) -> Texts:
    """The texts of a file, and whether each is a wish."""
    return [(line[2:].strip(), line.startswith("+")) for line in path.read_text("utf-8").splitlines() if line.strip()]


def everyday(path: Path) -> Texts:
    """The texts of everyday sets in all languages."""
    found: Texts = []
    for part in json.loads(path.read_text("utf-8"))["sets"].values():
        found += [(fact["fact"], fact.get("kind") == "instruction") for fact in part["facts"]]
        found += [(text, False) for text in part["filler"]]
    return found


def talk(path: Path) -> Texts:
    """Short messages of users of recorded talks; those that say "always" first may be wishes, and are left out."""
    said = [one.text for talk in read(path, 0) for one in talk.messages if one.role == "user"]
    short = [one for one in said if LEAST_CHARS < len(one) <= STATEMENT_CHARS and not one.lower().startswith("always")]
    return [(one, False) for one in random.Random(1).sample(short, min(OF_TALKS, len(short)))]


def fitted(rows: np.ndarray, wishes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression; the last column of the rows is the constant."""
    ridge = np.full(rows.shape[1], RIDGE)
    ridge[-1] = 0.0

    def loss(of: np.ndarray) -> tuple[float, np.ndarray]:
        odds = rows @ of
        lost = (weights * (np.logaddexp(0, odds) - wishes * odds)).sum() / weights.sum() + (ridge * of**2).sum()
        slope = rows.T @ (weights * (1 / (1 + np.exp(-odds)) - wishes)) / weights.sum() + 2 * ridge * of
        return lost, slope

    result: np.ndarray = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    return result


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--everyday", nargs="*", type=Path, default=[])
    parser.add_argument("--talks", nargs="*", type=Path, default=[])
    given = parser.parse_args()
    sets = {path.name: labelled(path) for path in given.texts}
    sets |= {path.name: everyday(path) for path in given.everyday}
    sets |= {path.name: talk(path) for path in given.talks}
    rows = {name: np.array([[*form(text).values(), 1.0] for text, _ in texts]) for name, texts in sets.items()}
    wishes = {name: np.array([float(wish) for _, wish in texts]) for name, texts in sets.items()}
    talks = {path.name for path in given.talks}
    weights = {
        name: np.where(of > 0, WISH_WEIGHT, 1.0) * (TALK_WEIGHT if name in talks else 1.0)
        for name, of in wishes.items()
    }

    def fit(names: list[str]) -> np.ndarray:
        return fitted(*(np.concatenate([of[name] for name in names]) for of in (rows, wishes, weights)))

    for name, texts in sets.items():
        odds = rows[name] @ fit([other for other in sets if other != name])
        taken = (odds >= LEAST_ODDS) & ~np.array([is_material(text) for text, _ in texts])
        of = wishes[name] > 0
        print(f"{name}: {taken[of].sum()} of {of.sum()} wishes found, {taken[~of].sum()} of {(~of).sum()} others taken")  # noqa: T201
    names = [*form(""), "bias"]
    assert not WEIGHTS or names == [*WEIGHTS]
    print({name: round(float(weight), 2) for name, weight in zip(names, fit([*sets]), strict=True)})  # noqa: T201


if __name__ == "__main__":
    main()
