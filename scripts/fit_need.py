#!/usr/bin/env python3
"""
Fit the weights of `proxy/palimpsest/core/work/need.py` again, and check them with whole projects left out.

    scripts/fit_need.py DATA [DATA ...] [--folds N]

DATA are recorded sessions, cut as `palimpsest bench work` does; a project is what stands in front of the first year or
number of a session's name. Every name that a cut took away is a row, labelled by whether the rest of the session needed
it; each cut weighs as much as the others. Printed is the share of needed names in a bare list of so many characters,
the likeliest for their length first: by the weights that are in place, by weights fitted on other sessions of the same
project, and by weights fitted on other projects alone; then the weights of all, to be put into the file by hand. Run it
with the environment's Python; it takes a minute.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zlib import crc32

import numpy as np
from palimpsest.core.work.account import LostMessage, changed_files, heads_of, sorted_calls
from palimpsest.core.work.names import names, placed
from palimpsest.core.work.need import WEIGHTS, name_mentions, signals, words
from palimpsest.evaluation.bench_work import MESSAGE_CHARS, MIN_MESSAGES, Cut, cuts, held, text_of
from palimpsest.evaluation.datasets import read
from palimpsest.memory.recall.lost_work import READ_CHARS
from scipy.optimize import minimize

CHARS = (1500, 2600)  # of a list of names
NAME_CHARS = 8  # as in `account`: of room that a name takes beside its own letters
LEAST_NEEDED = 8  # a cut of fewer needed names counts less
RIDGE = 3.0  # of a sum in which each cut weighs 20
CUT_WEIGHT = 20.0

Floats = np.ndarray


@dataclass(frozen=True)
class Row:
    """One cut: the names that were lost, their signals, and which of them are needed."""

    cut: Cut
    names: list[str]
    signals: Floats
    needed: Floats

    @cached_property
    def project(self) -> str:
        return re.split(r"-(?=\d)", self.cut.session)[0]

    def held(self, weights: Floats, chars: int) -> float:
        """The share of needed names in a list of the likeliest for their length."""
        odds = self.signals @ weights[:-1] + weights[-1]
        worth = 1 / (1 + np.exp(-odds)) / (np.array([len(name) for name in self.names]) + NAME_CHARS)
        told, room = [], chars
        for at in np.argsort(-worth, kind="stable"):
            if len(self.names[at]) < room:
                told.append(self.names[at])
                room -= len(self.names[at]) + 1
        return held(self.cut.needed, " ".join(told))


def row(cut: Cut) -> Row:
    lost, room = [], READ_CHARS
    for at, one in reversed([*enumerate(cut.lost)]):
        lost.append(LostMessage(at, one.role, text_of(one)[:MESSAGE_CHARS]))
        room -= len(lost[-1].text)
        if room < 0:
            break
    texts, done = sorted_calls(lost[::-1])
    stood = [placed(one.text) for one in texts]
    mentions = name_mentions(texts, stood, heads_of(done, texts), names(cut.visible))
    unseen = [name for name in mentions if name not in cut.visible]
    known, changed = words([cut.visible]), changed_files(done)
    rows = [signals(name, mentions[name], len(texts), known, changed) for name in unseen]
    return Row(cut, unseen, np.array(rows, float), np.array([name in cut.needed for name in unseen], float))


def fit(rows: Sequence[Row]) -> Floats:
    """Weights of a logistic regression with a ridge over standardized signals; the constant stands last."""
    x = np.concatenate([one.signals for one in rows])
    y = np.concatenate([one.needed for one in rows])
    weight = np.concatenate(
        [np.full(len(one.needed), CUT_WEIGHT / max(LEAST_NEEDED, one.needed.sum())) for one in rows]
    )
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    z = np.column_stack([(x - mean) / spread, np.ones(len(x))])

    def loss(beta: Floats) -> tuple[float, Floats]:
        odds = z @ beta
        ridge = np.r_[beta[:-1], 0.0]
        value = (weight * (np.logaddexp(0, odds) - y * odds)).sum() + RIDGE / 2 * ridge @ ridge
        return float(value), z.T @ (weight * (1 / (1 + np.exp(-odds)) - y)) + RIDGE * ridge

    beta = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    scaled = beta[:-1] / spread
    return np.r_[scaled, beta[-1] - scaled @ mean]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--folds", type=int, default=6, metavar="N", help="of the sessions of one project")
    given = parser.parse_args()
    sessions = [one for path in given.data for one in read(path) if len(one.messages) >= MIN_MESSAGES]
    rows = [row(cut) for session in sessions for cut in cuts(session)]
    placed = np.array([*WEIGHTS.values()])
    fold = {one.cut.session: crc32(one.cut.session.encode()) % given.folds for one in rows}
    for project in dict.fromkeys(one.project for one in rows):
        own = [one for one in rows if one.project == project]
        others = [one for one in rows if one.project != project]
        told = {"weights in place": [placed] * len(own)}
        if len({fold[one.cut.session] for one in own}) > 1:
            without = {at: fit([o for o in own if fold[o.cut.session] != at]) for at in range(given.folds)}
            told["other sessions"] = [without[fold[one.cut.session]] for one in own]
        if others:
            told["other projects"] = [fit(others)] * len(own)
        for how, each in told.items():
            shares = [np.mean([o.held(w, chars) for o, w in zip(own, each, strict=True)]) for chars in CHARS]
            said = ", ".join(f"{share:.3f} in {chars:,}" for share, chars in zip(shares, CHARS, strict=True))
            print(f"{project}: {len(own)} cuts, {how}: {said}")  # noqa: T201
    print({name: round(float(weight), 2) for name, weight in zip(WEIGHTS, fit(rows), strict=True)})  # noqa: T201


if __name__ == "__main__":
    main()
