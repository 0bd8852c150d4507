"""Lost facts that come back after a compaction, before anyone has asked."""

import json
from argparse import ArgumentParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from palimpsest.evaluation import bench_restore
from palimpsest.evaluation.restoring import BELOW_CUT, NO_CANDIDATE, Outcome
from palimpsest.memory.embedding.model import locate
from palimpsest.settings.policy import ModelPolicy


def outcome(system: str, conversation: str, kind: str, missed: str, *, budget: int = 6000) -> Outcome:
    return Outcome("d", conversation, 0.5, "extractive", system, budget, kind, kind == "port", missed)


OUTCOMES = [
    outcome("palimpsest", "c-1", "port", ""),
    outcome("palimpsest", "c-1", "path", ""),
    outcome("palimpsest", "c-1", "path", BELOW_CUT),
    outcome("palimpsest", "c-2", "port", ""),
    outcome("lantern", "c-1", "port", ""),
    outcome("lantern", "c-1", "path", NO_CANDIDATE),
    outcome("lantern", "c-1", "path", BELOW_CUT),
    outcome("lantern", "c-2", "port", BELOW_CUT),
]


def test_the_report_tells_shares_reasons_and_the_paired_comparison() -> None:
    given = SimpleNamespace(data=[Path("d")], budget_chars=[6000], seed=42)
    report = bench_restore.report(OUTCOMES, ["palimpsest", "lantern"], given, [])  # type: ignore[arg-type]
    told = json.loads(report.to_json())
    ours, theirs = (told["budgets"]["6000"][name] for name in ("palimpsest", "lantern"))
    assert (told["n"], ours["recovered"], ours["needed"], ours["conversations"]) == (4, 0.75, 1.0, 2)
    assert ours["by_conversation"] == pytest.approx((2 / 3 + 1) / 2)
    assert theirs["missed"] == {"never archived": 0, "not a candidate": 0.25, "ranked below the cut": 0.5}
    assert theirs["by_kind"]["port"] == {"n": 2, "recovered": 0.5, "by_conversation": 0.5}
    assert told["against"]["lantern"]["difference"] == pytest.approx((1 / 3 + 1) / 2, abs=1e-4)
    assert told["against"]["lantern"]["n"] == 2


@pytest.mark.skipif(locate(ModelPolicy()) is None, reason="needs the embedding model: palimpsest model install")
async def test_short_conversations_are_left_out_and_counted(tmp_path: Path) -> None:
    def conversation(id: str, count: int) -> str:
        words = ("user", "what of {}_{}?"), ("assistant", "it is run_{}_{}()")
        said = [(words[at % 2][0], words[at % 2][1].format(id, at)) for at in range(count)]
        messages = [{"id": f"m{at}", "role": role, "content": text} for at, (role, text) in enumerate(said)]
        return json.dumps({"id": id, "sessions": [{"id": "s", "messages": messages}], "questions": []})

    file = tmp_path / "talks.jsonl"
    file.write_text(f"{conversation('long', 24)}\n{conversation('short', 19)}\n")
    parser = ArgumentParser()
    bench_restore.add_arguments(parser)
    given = parser.parse_args(["--systems", "recent", "--budget-chars", "6000,150"])
    given.data, given.limit, given.seed = [file], 0, 42
    report = await bench_restore.run(given)
    assert f"{file}: 1 of 2 conversations; 1 have fewer than 20 messages" in report.notes
    budgets = report.data["budgets"]
    assert budgets["6000"]["palimpsest"]["recovered"] == 1.0 > budgets["150"]["palimpsest"]["recovered"]
