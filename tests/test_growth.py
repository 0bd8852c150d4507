"""No text makes a rule slow: its time grows as the text does. `scripts/growth.py` asks it of a megabyte."""

from __future__ import annotations

import pytest

from tests.growing import exceeds
from tests.reading import BESIDE, Rule, rules, texts_of

pytestmark = pytest.mark.slow

SMALL, LARGE = 2_000, 16_000
QUICK_SECONDS = 0.01  # for the large text: nothing to worry about, and too short to be measured well
LIMIT = 1.5  # 1 is linear, 2 quadratic; smaller texts pay more for what every call costs


@pytest.mark.parametrize("rule", [*rules()], ids=lambda rule: rule.name)
def test_the_time_of_each_rule_grows_as_the_text_does(rule: Rule) -> None:
    slow = [
        fragment
        for fragment, text_of in texts_of(rule.fragments, BESIDE[:2])
        if exceeds(rule.work, text_of, SMALL, LARGE, LIMIT, QUICK_SECONDS)
    ]
    assert slow == []
