"""
A scripted provider: an upstream that follows a script, on a real socket and with every API that we speak.

No model, no randomness, no clock in an answer. Tests, scripts and benchmarks see by it the bytes
that reach a provider.

    reply       what the script says, and what it is asked
    chat        ... said as a chat completion
    responses   ... as a response of OpenAI's Responses API
    messages    ... as a message of Anthropic's Messages API
    provider    what is answered without asking the script: models, token counts, what was stored, compaction
    server      the socket
"""

from palimpsest.evaluation.scripted.chat import error_body
from palimpsest.evaluation.scripted.reply import Received, Reply, Script, in_turn
from palimpsest.evaluation.scripted.server import ScriptedUpstream

__all__ = ["Received", "Reply", "Script", "ScriptedUpstream", "error_body", "in_turn"]
