import subprocess
import sys

import pytest
from palimpsest.settings.policy import AssistantPolicy
from palimpsest.settings.prices import price_of

from tests.running import ROOT


def test_the_price_of_the_policy_comes_first() -> None:
    price = price_of(AssistantPolicy(model="openai/gpt-4o-mini", prompt_dollars=1.0, answer_dollars=2.0))
    assert price is not None and price.of(1_000_000, 500_000) == pytest.approx(2.0)


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "openrouter/openai/gpt-4o-mini"])
def test_litellms_table_knows_prices(model: str) -> None:
    price = price_of(AssistantPolicy(model=model))
    assert price is not None and 0 < price.prompt < price.answer < 1e-5


def test_a_model_that_nobody_sells_has_no_price() -> None:
    assert price_of(AssistantPolicy(model="openai/my-own")) is None


def test_providers_are_read_without_an_import() -> None:
    program = (
        "import sys\n"
        "from palimpsest.settings.prices import providers\n"
        "assert {'anthropic', 'bedrock', 'vertex_ai', 'gemini', 'ollama', 'ollama_chat', 'azure', 'openrouter', "
        "'hosted_vllm', 'openai'} <= providers(), sorted(providers())\n"
        "assert 'claude' not in providers() and 'litellm' not in sys.modules\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
