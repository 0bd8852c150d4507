"""The hook for LiteLLM's proxy has requests prepared and answers archived, and without us all goes on as before."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.clients.conftest import FACT, QUESTION, TALK, answers
from tests.running import PATIENCE_SECONDS, ROOT, Proxy, free_port, memory_in, own_texts, rows, until

pytestmark = pytest.mark.slow

WINDOW = 2  # messages that this application sends: it forgets all others
BY = SimpleNamespace(user_id="ann")


def hook_at(url: str, key: str = "") -> Any:
    """The hook as LiteLLM imports it: from its file."""
    spec = importlib.util.spec_from_file_location("palimpsest_hook", ROOT / "config/plugins/litellm/palimpsest_hook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PalimpsestHook(url, key, PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
async def litellm() -> AsyncIterator[Any]:
    """
    LiteLLM without the connections and the callbacks of an earlier test, which it keeps in several lists.

    It is imported here, as that takes two seconds, which each worker would spend for the file that one of them runs.
    """
    import litellm
    from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

    yield litellm
    await close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    gc.collect()  # an open connection would be another test's
    for kept in (litellm.callbacks, litellm.success_callback, litellm.failure_callback):
        kept.clear()
    litellm._async_success_callback.clear()
    litellm._async_failure_callback.clear()


@pytest.fixture
def keyed(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy for several gateways, each with a key."""
    settings: Any = {
        "tenants": {"keys": [{"name": "acme", "key_env": "ACME"}]},
        "upstreams": [{"url": upstream.url, "auth": "held"}],
    }
    upstream.script = answers
    with Proxy(tmp_path / "data", "", settings, ACME="acme-key") as proxy:
        yield proxy


async def complete(litellm: Any, hook: Any, upstream: ScriptedUpstream, messages: list[Any], stream: bool) -> str:
    """What LiteLLM's proxy does with a request: the hook, the call with its callbacks, the answer."""
    given = {"model": "openai/gpt-4o", "messages": messages, "stream": stream}
    data = await hook.async_pre_call_hook(BY, None, given, "acompletion")
    told = await litellm.acompletion(**data, api_base=upstream.url, api_key="sk-provider")
    if not stream:
        return str(told.choices[0].message.content)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in told])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_the_application_dropped_comes_back(
    litellm: Any, keyed: Proxy, upstream: ScriptedUpstream, stream: bool
) -> None:
    hook = hook_at(keyed.url.removesuffix("/v1"), "acme-key")
    litellm.callbacks = [hook]
    messages: list[Any] = []
    for said, answer in TALK:
        messages.append({"role": "user", "content": said})
        assert await complete(litellm, hook, upstream, messages, stream) == answer
        messages.append({"role": "assistant", "content": answer})
        count = len(messages) // 2
        await asyncio.to_thread(until, lambda: _answers(keyed) == count, "the answer to be archived")  # noqa: B023
    await asyncio.to_thread(keyed.settle)
    await complete(litellm, hook, upstream, [*messages[-WINDOW:], {"role": "user", "content": QUESTION}], stream)
    reached = upstream.received[-1].json
    assert FACT in memory_in(reached)
    assert FACT not in own_texts(reached)
    assert {r.headers["Authorization"] for r in upstream.received} == {"Bearer sk-provider"}
    assert rows(keyed.data, "SELECT DISTINCT user_id FROM conversation") == [("ann",)]


def _answers(proxy: Proxy) -> int:
    ((count,),) = rows(proxy.data, "SELECT count(*) FROM turn WHERE ending = 'complete'")
    return int(count)


async def test_where_we_are_away_or_refuse_the_request_goes_on_as_it_came(keyed: Proxy) -> None:
    given = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "metadata": {"theirs": 1}}
    for hook in (hook_at(f"http://127.0.0.1:{free_port()}"), hook_at(keyed.url.removesuffix("/v1"), "plm_none")):
        assert await hook.async_pre_call_hook(BY, None, given, "acompletion") is given
        assert await hook.async_pre_call_hook(BY, None, given, "embeddings") is given
