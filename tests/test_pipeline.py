"""What happens to one request?"""

from __future__ import annotations

import orjson

from proxy.core.history.link_keys import NEWEST_CLUES
from proxy.domain import Json
from proxy.scripted import ScriptedUpstream
from tests.running import Proxy, as_headers, request

FERRY = "The ferry to the northern islands leaves from the old pier at a quarter past nine."


def test_what_many_new_messages_stand_behind_is_continued(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    upstream.script = lambda _: FERRY
    history: list[Json] = [{"role": "user", "content": "From where and when does the ferry to the islands leave?"}]

    def say() -> tuple[str, str]:
        body = orjson.dumps({"model": "gpt-4o", "messages": history})
        answered = request(proxy.port, "POST", "/v1/chat/completions", body, as_headers(key, {}))
        history.append({"role": "assistant", "content": answered.text})
        return answered.said("conversation"), answered.said("event")

    begun, _ = say()
    for number in range(2 * NEWEST_CLUES):
        content = f"Line {number} of the log that was pasted in many pieces, each of them a message of its own."
        history.append({"role": "user", "content": content})
    assert say() == (begun, "append")
