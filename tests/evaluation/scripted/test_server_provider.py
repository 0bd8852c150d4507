"""What a provider knows by itself is there without a script."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import openai
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.evaluation.scripted.reply import MODELS

pytestmark = pytest.mark.slow


@pytest.fixture
def client(upstream: ScriptedUpstream) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=upstream.url, api_key="sk-x", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic_client(upstream: ScriptedUpstream) -> Iterator[anthropic.Anthropic]:
    base_url = upstream.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base_url, api_key="sk-x", max_retries=0) as client:
        yield client


def test_models_are_listed_in_the_shape_of_the_wire(
    client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    assert [model.id for model in client.models.list()] == list(MODELS)
    assert [model.display_name for model in anthropic_client.models.list()] == list(MODELS)


def test_tokens_are_counted_by_the_size_of_the_request(anthropic_client: anthropic.Anthropic) -> None:
    def count(text: str) -> int:
        asked = [{"role": "user", "content": text}]
        return anthropic_client.messages.count_tokens(model="m", messages=asked).input_tokens

    assert 0 < count("short") < count("long " * 100)


def test_response_is_kept_until_it_is_deleted(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play("hello")
    said = client.responses.create(model="m", input="hi")
    assert client.responses.retrieve(said.id).output_text == "hello"
    client.responses.delete(said.id)
    with pytest.raises(openai.NotFoundError, match=f"Response with id '{said.id}' not found"):
        client.responses.retrieve(said.id)


def test_only_a_response_that_was_stored_can_be_followed(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play("one", "two", "three")
    first = client.responses.create(model="m", input="hi")
    second = client.responses.create(model="m", input="go on", previous_response_id=first.id, store=False)
    assert second.previous_response_id == first.id
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="m", input="go on", previous_response_id=second.id)
    assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")


def test_conversation_holds_what_was_said_in_it(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play("one", "two")
    conversation = client.conversations.create()
    said = client.responses.create(model="m", input="hi", conversation=conversation.id)
    assert said.conversation is not None and said.conversation.id == conversation.id
    with pytest.raises(openai.NotFoundError, match="Conversation with id 'conv_unknown' not found"):
        client.responses.create(model="m", input="hi", conversation="conv_unknown")


def test_compacted_window_keeps_the_users_words_and_hides_the_rest(
    upstream: ScriptedUpstream, client: openai.OpenAI
) -> None:
    upstream.play("the port is 7431")
    said = client.responses.create(model="m", input="Which port?")
    compacted = client.responses.with_raw_response.compact(model="m", previous_response_id=said.id)
    user, item = compacted.parse().output
    assert user.type == "message" and item.type == "compaction" and item.encrypted_content
    assert "Which port?" in compacted.text and "7431" not in compacted.text
    with pytest.raises(openai.BadRequestError):
        client.responses.compact(model="m", previous_response_id="resp_unknown")
