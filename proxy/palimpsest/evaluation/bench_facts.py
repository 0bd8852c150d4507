"""
Benchmark: how many of the facts that patterns take from messages are right.

A label is the judgement of a reader of the statement with what stands around it: right, or why not. Labels refer to
the data by set, conversation, message, place and a digest of the fact, so that no text of the data is kept with them,
and a fact that a changed pattern words differently has no label until it is read again.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from palimpsest.core.facts.extraction import VERSION, proposals
from palimpsest.domain import FactProposal
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.datasets import read
from palimpsest.evaluation.report import Report, Table

RIGHT = "right"
UNLABELLED = "unlabelled"
DIGEST_CHARS = 12  # of a SHA-256 in hexadecimal
AROUND_CHARS = 60  # of the message, in front of a statement that is shown

Label = tuple[str, str, str, int, int, str]
"""Set, conversation, message, start, stop and digest of a proposed fact."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message that may state facts."""

    dataset: str
    conversation: str
    message: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """A fact that was proposed, where it stands, and what its label says: "right", a reason, or "unlabelled"."""

    said: Said
    fact: FactProposal
    verdict: str

    @property
    def label(self) -> Label:
        return label_of(self.said, self.fact)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    help = "judgements of proposed facts, tab-separated (none: facts are only counted)"
    parser.add_argument("--labels", type=Path, metavar="FILE", help=help)
    parser.add_argument("--new", type=Path, metavar="FILE", help="write labels for facts that have none, to be judged")
    help = "show proposed facts that have this verdict: right, wrong, unlabelled, all"
    parser.add_argument("--show", choices=("right", "wrong", "unlabelled", "all"), help=help)


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    labels = read_labels(given.labels) if given.labels else {}
    said = [message for path in given.data for message in messages(path)]
    found = proposed(said, labels)
    if given.new:
        with given.new.open("w", encoding="utf-8", newline="") as file:
            lines = [(*one.label, one.verdict, 1) for one in found if one.verdict == UNLABELLED]
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows(lines)
    return report([str(path) for path in given.data], found, len(said), given.show)


def messages(path: Path) -> list[Said]:
    """
    The messages of a data set, by the name of its folder.

    Where both speakers are persons with names, the words of both count as a user's. Of a file of added facts
    (`questions.py`), each fact is a message of its language.
    """
    dataset = path.name if path.is_dir() else path.parent.name
    if path.suffix == ".json":
        sets = json.loads(path.read_text(encoding="utf-8"))["sets"]
        return [
            Said(dataset, language, str(at), "user", told["fact"])
            for language, of in sets.items()
            for at, told in enumerate(of["facts"])
        ]
    return [
        Said(dataset, conversation.id, one.id, "user" if one.text != one.content else one.role, one.content)
        for conversation in read(path)
        for one in conversation.messages
    ]


def proposed(said: Iterable[Said], labels: Mapping[Label, str]) -> list[Proposed]:
    """Every fact that messages state, with its verdict."""
    return [
        Proposed(one, fact, labels.get(label_of(one, fact), UNLABELLED))
        for one in said
        for fact in proposals(one.text, one.role)
    ]


def label_of(said: Said, fact: FactProposal) -> Label:
    """The label's reference to a fact."""
    content = "\0".join((fact.category, fact.subject, fact.slot, fact.value, said.text[fact.start : fact.stop]))
    digest = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return (said.dataset, said.conversation, said.message, fact.start, fact.stop, digest)


def read_labels(path: Path) -> dict[Label, str]:
    """
    The judgements of a file, one a line: the parts of a `Label`, the verdict, and how many read it (or nothing).

    Raises:
        PolicyError: it cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return {
                (dataset, conversation, message, int(start), int(stop), digest): verdict
                for dataset, conversation, message, start, stop, digest, verdict, *_ in csv.reader(
                    lines, delimiter="\t"
                )
            }
    except (OSError, ValueError) as cause:
        raise PolicyError(
            f"reading the labels of {path}: {cause}; expected seven values a line, and how many read it"
        ) from cause


def report(data: Sequence[str], found: Sequence[Proposed], n: int, show: str | None = None) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        n: messages that were read.
        show: a verdict, "wrong" or "all"; None: none is shown.
    """
    by_set = _rows(found, lambda one: one.said.dataset)
    by_category = _rows(found, lambda one: str(one.fact.category))
    (total,) = _rows(found, lambda one: "all") or [("all", 0, 0, 0, None)]
    columns = ("", "facts", "labelled", "right", "precision")
    tables = [
        Table("by category", columns, [*by_category, total]),
        Table("by data set", columns, by_set),
    ]
    if show is not None:
        shown = [one for one in found if show in ("all", one.verdict) or (show == "wrong" and _is_wrong(one))]
        tables.append(Table(f"facts: {show}", ("where", "fact", "statement", "verdict"), [*map(_shown, shown)]))
    return Report(
        title=f"facts: what patterns (version {VERSION}) take down, against judgements",
        data={
            "data": list(data),
            "n": n,
            "facts": total[1],
            "labelled": total[2],
            "precision": total[4],
            "by_category": {row[0]: row[4] for row in by_category},
            "by_set": {row[0]: row[4] for row in by_set},
        },
        tables=tables,
        notes=[f"{n} messages; precision is of facts that have a label."],
    )


def precision(found: Iterable[Proposed]) -> float | None:
    """The share of labelled facts that are right; None: none is labelled."""
    verdicts = [one.verdict for one in found if one.verdict != UNLABELLED]
    return sum(verdict == RIGHT for verdict in verdicts) / len(verdicts) if verdicts else None


def _is_wrong(one: Proposed) -> bool:
    return one.verdict not in (RIGHT, UNLABELLED)


def _rows(found: Sequence[Proposed], name_of: Any) -> list[tuple[str, int, int, int, float | None]]:
    rows = []
    for name in dict.fromkeys(map(name_of, found)):
        of = [one for one in found if name_of(one) == name]
        labelled = [one for one in of if one.verdict != UNLABELLED]
        rows.append((name, len(of), len(labelled), sum(one.verdict == RIGHT for one in of), precision(of)))
    return rows


def _shown(one: Proposed) -> tuple[str, str, str, str]:
    said, fact = one.said, one.fact
    around = said.text[max(0, fact.start - AROUND_CHARS) : fact.start] + f"[{said.text[fact.start : fact.stop]}]"
    where = f"{said.dataset} {said.conversation} {said.message} {fact.start}"
    return where, f"{fact.subject} / {fact.slot} = {fact.value}", " ".join(around.split()), one.verdict
