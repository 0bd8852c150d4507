"""LiteLLM's providers are known without importing it."""

import subprocess
import sys

from tests.running import ROOT


def test_providers_are_read_without_an_import() -> None:
    program = (
        "import sys\n"
        "from palimpsest.settings.providers import providers\n"
        "assert {'anthropic', 'bedrock', 'vertex_ai', 'gemini', 'ollama', 'ollama_chat', 'azure', 'openrouter', "
        "'hosted_vllm', 'openai'} <= providers(), sorted(providers())\n"
        "assert 'claude' not in providers() and 'litellm' not in sys.modules\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
