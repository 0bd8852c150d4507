"""
Memory for LiteLLM's proxy: a Palimpsest proxy prepares each request before LiteLLM sends it, and archives its answer.

    litellm_settings:
      callbacks: palimpsest_hook.hook

`PALIMPSEST_URL` is the address of that proxy, `PALIMPSEST_API_KEY` one of its keys. Whatever goes wrong here, the
request goes on as it came.
"""

import os
from typing import Any

import httpx
from litellm._logging import verbose_proxy_logger
from litellm.integrations.custom_logger import CustomLogger

APIS = {  # by LiteLLM's type of call: the API, and what memory is added to
    "completion": ("chat/completions", "messages"),
    "acompletion": ("chat/completions", "messages"),
    "responses": ("responses", "input"),
    "aresponses": ("responses", "input"),
    "anthropic_messages": ("messages", "messages"),
}
# What the request says, without what LiteLLM keeps beside it.
FIELDS = ("model", "messages", "input", "instructions", "system", "tools", "max_tokens", "max_completion_tokens")
FIELDS += ("max_output_tokens", "previous_response_id", "conversation", "user", "metadata", "stream")
TURN = "palimpsest_turn"
SECONDS = 1.0  # Palimpsest answers within its own deadline, a quarter of that


class PalimpsestHook(CustomLogger):
    """Prepares requests with memory, and hands their answers over; `seconds` is how long it waits for Palimpsest."""

    def __init__(self, url: str = "", key: str = "", seconds: float = SECONDS) -> None:
        super().__init__()
        self._url = (url or os.environ.get("PALIMPSEST_URL") or "http://127.0.0.1:8484").rstrip("/")
        key = key or os.environ.get("PALIMPSEST_API_KEY", "")
        self._seconds = seconds
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: dict, call_type: str) -> dict:
        """The request with memory; the very same where there is none."""
        api, changed = APIS.get(str(getattr(call_type, "value", call_type)), ("", ""))
        if not api or changed not in data:
            return data
        user = getattr(user_api_key_dict, "user_id", None) or ""
        headers = {"x-palimpsest-user": user} if user else {}
        request = {name: data[name] for name in FIELDS if name in data and name != "metadata"}
        try:
            prepared = await self._post("prepare", {"api": api, "request": request}, headers)
            memory, turn = prepared["request"][changed], prepared["turn"]
        except Exception as failure:
            verbose_proxy_logger.warning("palimpsest: a request goes on without memory: %s", type(failure).__name__)
            return data
        told = {**(data.get("metadata") or {}), TURN: turn}
        return {**data, changed: memory, "metadata": told}

    async def async_log_success_event(self, kwargs: dict, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Hand the answer over; of a stream LiteLLM puts it together."""
        turn = ((kwargs.get("litellm_params") or {}).get("metadata") or {}).get(TURN)
        if not turn or not hasattr(response_obj, "model_dump"):
            return
        try:
            await self._post("turns", {"turn": turn, "answer": response_obj.model_dump(mode="json")}, {})
        except Exception as failure:
            verbose_proxy_logger.warning("palimpsest: an answer was not archived: %s", type(failure).__name__)

    async def _post(self, path: str, body: dict, headers: dict) -> dict:
        async with httpx.AsyncClient(timeout=self._seconds, trust_env=False) as client:
            answer = await client.post(f"{self._url}/memory/v1/{path}", json=body, headers={**self._headers, **headers})
            return answer.raise_for_status().json()


hook = PalimpsestHook()
