"""
A scripted provider: an upstream that follows a script, on a real socket and with every API that we speak.

No model, no randomness, no clock in an answer. It ships with the package because the demo runs on it, and because
whoever builds on this house needs it for the same reason as our tests: to see the bytes that reach a provider.

    reply       what the script says, and what it is asked
    chat        ... said as a chat completion
    responses   ... as a response of OpenAI's Responses API
    messages    ... as a message of Anthropic's Messages API
    provider    what is answered without asking the script: models, token counts, what was stored, compaction
    server      the socket
"""

from palimpsest.scripted.chat import error_body
from palimpsest.scripted.reply import Received, Reply, Script, in_turn
from palimpsest.scripted.server import ScriptedUpstream

__all__ = ["Received", "Reply", "Script", "ScriptedUpstream", "error_body", "in_turn"]
