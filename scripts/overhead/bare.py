"""
A bare pass-through for comparison: Starlette and aiohttp, and nothing else.

UPSTREAM=http://127.0.0.1:1234 uvicorn bare:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from yarl import URL

UPSTREAM = os.environ["UPSTREAM"]
HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"host", b"te", b"trailer", b"upgrade"}


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    app.state.session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    )
    async with app.state.session:
        yield


async def forward(request: Request) -> StreamingResponse:
    headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers.raw if n not in HOP_BY_HOP]
    answer = await request.app.state.session.request(
        request.method,
        URL(f"{UPSTREAM}{request.scope['raw_path'].decode()}", encoded=True),
        headers=headers,
        data=await request.body(),
        allow_redirects=False,
    )
    reply = StreamingResponse(chunks(answer), answer.status)
    reply.raw_headers = [(n.lower(), v) for n, v in answer.raw_headers if n.lower() not in HOP_BY_HOP]
    return reply


async def chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for chunk in answer.content.iter_any():
            yield chunk


app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])], lifespan=lifespan)
