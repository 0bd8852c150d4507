"""A request is prepared for the tenant of a key, and its answer taken once, from the same tenant."""

from __future__ import annotations

from palimpsest.domain import Ending, RawHeaders
from palimpsest.domain.ports import Prepared
from palimpsest.edge.open_turns import OpenTurn, OpenTurns

from tests.edge.admin.asking import ACME, ADMIN, House
from tests.edge.serving import ScriptedListener, ScriptedPipeline

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


async def test_a_request_is_prepared_for_a_key_and_for_no_admin_token(house: House) -> None:
    told = {"api": "chat/completions", "request": REQUEST}
    status, said = await house.send("POST", "prepare", told, ACME)
    assert (status, said["request"], said["turn"]) == (200, REQUEST, "")
    assert said["headers"] == {"x-palimpsest-note": "scripted"}
    assert (await house.send("POST", "prepare", told, ADMIN))[0] == 403
    assert (await house.send("POST", "prepare", told | {"api": "embeddings"}, ACME))[0] == 400


async def test_an_answer_that_nobody_waits_for_is_said_to_be_one(house: House) -> None:
    assert (await house.send("POST", "turns", {"turn": "t-1", "answer": {}}, ACME))[0] == 404


async def test_an_answer_is_taken_once_and_from_the_tenant_of_its_request() -> None:
    pipeline, turns = ScriptedPipeline(), OpenTurns()

    def listen(status: int, headers: RawHeaders) -> ScriptedListener:
        return pipeline._listen(status, headers)

    turns.add("t-1", OpenTurn(Prepared(b"", listen=listen), "key:acme"))
    assert not await turns.answer("t-1", "key:globex", b"{}")
    assert await turns.answer("t-1", "key:acme", b'{"choices": []}')
    assert not await turns.answer("t-1", "key:acme", b"{}")
    (listener,) = pipeline.listeners
    assert (listener.status, listener.heard, listener.endings) == (200, b'{"choices": []}', [Ending.COMPLETE])
