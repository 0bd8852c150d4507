#!/usr/bin/env python3
"""
How the cost of each rule that reads texts grows with a text, made of what the rule itself looks for.

    scripts/growth.py [SMALLEST LARGEST [RULE]]

Prints, for each rule, the fragment whose repetition has the highest exponent, that exponent (1 is linear), and the
slowest of the largest texts. Ends with status 1 where an exponent is above 1.2.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.growing import FLOOR_SECONDS, exponent_of
from tests.reading import rules, texts_of

LIMIT = 1.2


def main(smallest: int, largest: int, rule: str) -> int:
    worst = 0.0
    for one in rules():
        if rule not in one.name:
            continue
        found = []
        for fragment, text_of in texts_of(one.fragments):
            power, seconds = exponent_of(one.work, text_of, smallest, largest, 1)
            if power > LIMIT:  # again: other work on the machine disturbs the shortest measurements
                power, seconds = min((power, seconds), exponent_of(one.work, text_of, smallest, largest, 3))
            found.append((power if seconds > 2 * FLOOR_SECONDS else 0.0, seconds, fragment))
        power, _, fragment = max(found)
        slowest = max(found, key=lambda row: row[1])
        worst = max(worst, power)
        print(  # noqa: T201
            f"{one.name:32} {len(found):5} texts  exponent {power:4.2f} {fragment!r:40.40}"
            f"  slowest {slowest[1]:6.3f} s {slowest[2]!r:40.40}",
            flush=True,
        )
    print(f"highest exponent {worst:.2f}, allowed {LIMIT}")  # noqa: T201
    return worst > LIMIT


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smallest", type=int, nargs="?", default=10_000, help="characters; %(default)s")
    parser.add_argument("largest", type=int, nargs="?", default=1_000_000, help="characters; %(default)s")
    parser.add_argument("rule", nargs="?", default="", help="a part of the name of the only rules to measure")
    sys.exit(main(**vars(parser.parse_args())))
