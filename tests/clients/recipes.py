"""The recipes in the documents: their code blocks, with another address in them."""

from __future__ import annotations

import re

from tests.running import ROOT

ADDRESS = "http://127.0.0.1:8484"
ENVIRONMENTS = {"LlamaIndex": "llama-index", "AutoGen": "autogen"}  # of libraries; others run in that of the tests
DOCUMENTS = {name: (ROOT / name).read_text() for name in ("docs/clients.md", "docs/mcp.md", "README.md")}


def recipes(document: str, language: str) -> list[tuple[str, str]]:
    """Every block of a language, with the heading that it stands under."""
    found, heading = [], ""
    for title, kind, block in re.findall(r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```", DOCUMENTS[document], re.M | re.S):
        heading = title or heading
        if kind == language:
            found.append((heading, block))
    return found


def recipe(client: str, language: str, url: str, document: str = "clients.md") -> str:
    """The only block of that language for a client in a document of `docs`; `url` is the proxy's, with /v1."""
    (block,) = [block for heading, block in recipes(f"docs/{document}", language) if heading == client]
    return at(block, url)


def at(block: str, url: str) -> str:
    """A block with this address in it."""
    assert ADDRESS in block
    return block.replace(ADDRESS, url.removesuffix("/v1"))


PYTHON = recipes("docs/clients.md", "python")
LIBRARIES = {  # their recipes, by the row of the table of `docs/clients.md` that says what differs
    **{name: dict(PYTHON)[name] for name in ("OpenAI SDK", "Anthropic SDK", "openai-agents", "LlamaIndex")},
    **{name: dict(PYTHON)[name] for name in ("pydantic-ai", "LangGraph", "AutoGen")},
    "LangChain, Anthropic's models": dict(PYTHON)["LangChain"],
    "LangChain, OpenAI's models": dict(reversed(PYTHON))["LangChain"],
}
