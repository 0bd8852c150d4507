"""
The words in which providers refuse a prompt that is longer than the model's window, and a script that uses them.

Each text was taken from a public report of such a refusal, which `source` names; only the numbers are parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson
from palimpsest.domain import Json
from palimpsest.evaluation.scripted.reply import CHARS_PER_TOKEN, Reply, Script

GITHUB = "https://github.com/"


@dataclass(frozen=True, slots=True)
class Words:
    """One provider's refusal: HTTP status, and the body for a prompt of so many tokens and a window of so many."""

    status: int
    body: Callable[[int, int], Json | str]
    source: str
    names_window: bool = True

    def said(self, tokens: int, window: int) -> bytes:
        body = self.body(tokens, window)
        return body.encode() if isinstance(body, str) else orjson.dumps(body)


def _openai(text: str, code: str | int | None = None, kind: str = "invalid_request_error") -> Json:
    return {"error": {"message": text, "type": kind, "param": "messages", "code": code}}


def _anthropic(text: str) -> Json:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}


PROVIDERS: Mapping[str, Words] = {
    "openai": Words(
        400,
        lambda n, w: _openai(
            f"This model's maximum context length is {w} tokens. However, your messages resulted in {n} tokens. "
            "Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        GITHUB + "rahul2002m/ChatPDF/issues/6",
    ),
    "openai responses": Words(
        400,
        lambda n, w: _openai(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "context_length_exceeded",
        ),
        GITHUB + "openai/codex/issues/19269",
        names_window=False,
    ),
    "anthropic": Words(
        400,
        lambda n, w: _anthropic(f"prompt is too long: {n} tokens > {w} maximum"),
        GITHUB + "boldsoftware/exe.dev/issues/62",
    ),
    "bedrock": Words(
        400,
        lambda n, w: {"message": "Input is too long for requested model."},
        GITHUB + "aws-samples/bedrock-chat/issues/95",
        names_window=False,
    ),
    "vllm": Words(
        400,
        lambda n, w: {
            "object": "error",
            "message": f"This model's maximum context length is {w} tokens. However, you requested {n + 64} tokens "
            f"({n} in the messages, 64 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        GITHUB + "ogx-ai/ogx/issues/4534",
    ),
    "vllm without room": Words(
        400,
        lambda n, w: {
            "object": "error",
            "message": f"max_tokens must be at least 1, got {w - n}.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        GITHUB + "vllm-project/vllm/issues/4667",
        names_window=False,
    ),
    "sglang": Words(
        400,
        lambda n, w: _openai(f"The input ({n} tokens) is longer than the model's context length ({w} tokens)."),
        GITHUB + "BerriAI/litellm/issues/10793",
    ),
    "llama.cpp": Words(
        400,
        lambda n, w: {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the context size or enable "
                "context shift",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": n,
                "n_ctx": w,
            }
        },
        GITHUB + "oobabooga/textgen/issues/7257",
    ),
    "llama.cpp before": Words(
        500,
        lambda n, w: _openai("the request exceeds the available context size, try increasing it", 500, "server_error"),
        GITHUB + "ggml-org/llama.cpp/pull/15780",
        names_window=False,
    ),
    "llama-cpp-python": Words(
        500,
        lambda n, w: _openai(f"Requested tokens ({n}) exceed context window of {w}", None, "internal_server_error"),
        GITHUB + "rllm-team/rllm/issues/55",
    ),
    "ollama": Words(
        400,
        lambda n, w: {"error": "the input length exceeds the context length"},
        GITHUB + "nano-step/nano-brain/issues/208",
        names_window=False,
    ),
    "lm studio": Words(
        400,
        lambda n, w: {
            "error": f"Trying to keep the first {n} tokens when context the overflows. However, the model is loaded "
            f"with context length of only {w} tokens, which is not enough. Try to load the model with a larger context "
            "length, or provide a shorter input."
        },
        GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/546",
    ),
    "lm studio again": Words(
        400,
        lambda n, w: {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length "
            f"(n_keep: {n} >= n_ctx: {w}). Try to load the model with a larger context length, or provide a shorter "
            "prompt."
        },
        GITHUB + "tinyhumansai/openhuman/issues/3550",
    ),
    "gemini": Words(
        400,
        lambda n, w: {
            "error": {
                "code": 400,
                "message": f"The input token count ({n}) exceeds the maximum number of tokens allowed ({w}).",
                "status": "INVALID_ARGUMENT",
            }
        },
        GITHUB + "google-gemini/gemini-cli/issues/4118",
    ),
    "mistral": Words(
        400,
        lambda n, w: {
            "object": "error",
            "message": f"Prompt contains {n} tokens and 0 draft tokens, too large for model with {w} maximum context "
            "length",
            "type": "invalid_request_invalid_args",
            "code": "3051",
        },
        "an SDKError of mistralai.client, as notebooks quote it that send it a long document",
    ),
    "openrouter": Words(
        400,
        lambda n, w: {
            "error": {
                "message": f"This endpoint's maximum context length is {w} tokens. However, you requested about {n} "
                f'tokens ({n} of text input). Please reduce the length of either one, or use the "middle-out" '
                "transform to compress your prompt automatically.",
                "code": 400,
                "metadata": {"provider_name": None},
            }
        },
        GITHUB + "Aider-AI/aider/issues/3721",
    ),
    "litellm": Words(
        400,
        lambda n, w: _openai(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
            "Hosted_vllmException - Error code: 400 - {'object': 'error', 'message': \"This model's maximum context "
            f"length is {w} tokens. However, you requested {n} tokens. Please reduce the length of the messages or "
            "completion.\", 'type': 'BadRequestError', 'param': None, 'code': 400}",
            "400",
        ),
        GITHUB + "BerriAI/litellm/issues/12680",
    ),
    "text-generation-inference": Words(
        422,
        lambda n, w: {
            "error": f"Input validation error: `inputs` must have less than {w} tokens. Given: {n}",
            "error_type": "validation",
        },
        GITHUB + "huggingface/text-generation-inference/issues/695",
    ),
    "text-generation-inference, with the answer": Words(
        422,
        lambda n, w: {
            "error": f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {w}. Given: {n} `inputs` "
            "tokens and 1000 `max_new_tokens`",
            "error_type": "validation",
        },
        GITHUB + "huggingface/text-generation-inference/issues/628",
    ),
    "copilot": Words(
        400,
        lambda n, w: _openai(f"prompt token count of {n} exceeds the limit of {w}", "model_max_prompt_tokens_exceeded"),
        GITHUB + "NousResearch/hermes-agent/pull/109698",
    ),
    "groq": Words(
        413,
        lambda n, w: _openai(
            f"Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): "
            f"Limit {w}, Requested {n}, please reduce your message size and try again.",
            "rate_limit_exceeded",
            "tokens",
        ),
        GITHUB + "cottongeeks/podscript/issues/20",
    ),
    "a web server in front": Words(
        413,
        lambda n, w: "<html><head><title>413 Request Entity Too Large</title></head></html>",
        "https://nginx.org/en/docs/http/ngx_http_core_module.html#client_max_body_size",
        names_window=False,
    ),
}


def within(window_tokens: int, words: Words, script: Script) -> Script:
    """The script, for prompts of at most so many tokens (characters of the body by four); these words for others."""

    def answer(asked: Json) -> Reply | str:
        tokens = prompt_tokens(asked)
        if tokens > window_tokens:
            return Reply(status=words.status, body=words.said(tokens, window_tokens))
        reply = script(asked)
        return reply if isinstance(reply, Reply) else Reply(reply, prompt_tokens=tokens)

    return answer


def prompt_tokens(asked: Json) -> int:
    """Tokens of a request, as this provider counts them: of all of its body."""
    return len(orjson.dumps(asked)) // CHARS_PER_TOKEN
