"""
At least 95 % of what is taken from real conversations is right, in each category too.

`labels.tsv` holds the judgements: set, conversation, message, start, stop, digest of the fact, "right" or why not
(context: it names what was said elsewhere; boundary, garbled: the value is cut wrongly; task, passing: it does not
last; other: it is about somebody else; pasted), and how many readers judged it, independently. The data is not part of
the project. A fact that has no label fails the test: read it (`palimpsest bench facts DATA --labels
tests/core/facts/labels.tsv --show unlabelled --new FILE` prints it and writes the line that is missing), judge it, and
add the line.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from palimpsest.core.facts.form import CONFIDENCE
from palimpsest.domain import FactCategory
from palimpsest.evaluation.bench_facts import UNLABELLED, Proposed, messages, precision, proposed, read_labels

pytestmark = pytest.mark.slow  # reads 40,000 messages, in 10 s

ROOT = Path(__file__).parents[3]
LABELS = read_labels(Path(__file__).parent / "labels.tsv")
LEAST_LABELS = 300
LEAST_PRECISION = 0.95
LEAST_OF_A_CATEGORY = 30  # labels, for its precision to mean anything
UNSEEN = {FactCategory.NOTE}  # nobody in the data asks for something to be remembered


@pytest.fixture(scope="module")
def found() -> list[Proposed]:
    data = next((folder / "shared/data" for folder in ROOT.parents if (folder / "shared/data").is_dir()), None)
    if data is None:
        pytest.skip(f"the labelled data is not here: no shared/data in a folder above {ROOT}")
    sets = sorted(folder for folder in data.iterdir() if folder.is_dir())
    files = [folder / "dev.json" if (folder / "dev.json").exists() else folder for folder in sets]
    return proposed([said for file in files for said in messages(file)], LABELS)


def test_every_fact_has_a_label(found: list[Proposed]) -> None:
    assert [one.label for one in found if one.verdict == UNLABELLED] == []


def test_facts_are_right(found: list[Proposed]) -> None:
    assert len(found) >= LEAST_LABELS
    assert (precision(found) or 0) >= LEAST_PRECISION


def test_facts_of_each_category_are_right_as_often_as_they_say(found: list[Proposed]) -> None:
    of: dict[FactCategory, list[Proposed]] = defaultdict(list)
    for one in found:
        of[one.fact.category].append(one)
    assert of.keys() == {*FactCategory} - UNSEEN
    assert all(len(facts) >= LEAST_OF_A_CATEGORY for facts in of.values())
    low = {category: precision(facts) for category, facts in of.items()}
    assert {category: share for category, share in low.items() if (share or 0) < CONFIDENCE[category]} == {}
    assert min(share for category, share in CONFIDENCE.items() if category not in UNSEEN) >= LEAST_PRECISION
