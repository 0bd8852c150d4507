"""Where LLMLingua-2 is not there, that is said, and it compresses nothing."""

from pathlib import Path

from palimpsest.features.items.llmlingua import LLMLingua2
from palimpsest.settings.policy import ModelPolicy


def test_what_is_missing_is_said_and_nothing_is_compressed_by_it(tmp_path: Path) -> None:
    model = LLMLingua2(ModelPolicy(cache=tmp_path))
    assert "llmlingua" in model.trouble and "statistics" in model.trouble
    assert model.compressor(0.6) is None
