from palimpsest.evaluation.baselines.chunks import CHUNK_TOKENS, ENCODING, token_chunks
from palimpsest.memory.tokens.counter import encoder

from tests.evaluation.told import told


def test_chunks_are_the_conversation_without_overlap() -> None:
    conversation = told("user: one two three", "assistant: " + "word " * 500)
    chunks = token_chunks(conversation)
    assert "".join(chunk.text for chunk in chunks) == "user: one two three\nassistant: " + "word " * 500 + "\n"
    assert [chunk.messages for chunk in chunks] == [(0, 1), (1,), (1,)]
    assert {len(encoder(ENCODING).encode_ordinary(chunk.text)) for chunk in chunks[:-1]} == {CHUNK_TOKENS}
