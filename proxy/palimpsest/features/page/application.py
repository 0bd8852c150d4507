"""
The application behind /memory/: views, forms, the live stream, and signing in.

It reads without a script. What was archived is untrusted: it is shown as text only, under a policy that lets a browser
run nothing but the page's own file and ask nobody but this host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import structlog
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.edge.access import Caller
from palimpsest.edge.admin.guard import Guard, unknown_path
from palimpsest.edge.admin.operation import PREFIX, Operation
from palimpsest.edge.replies import json_reply
from palimpsest.features.page.asking import Answer, Api
from palimpsest.features.page.live import Feed, Turns
from palimpsest.features.page.presentation import COMPACTIONS, FILTERS
from palimpsest.features.page.sessions import SESSION_SECONDS, Sessions
from palimpsest.features.page.views import ACTIONS, VIEWS, Action, View
from palimpsest.memory.archive import Archive

ROOT = "/memory"
COOKIE = "palimpsest_page"
HERE = Path(__file__).parent
FORM_BYTES = 1 << 16  # the longest names and words to look for need a tenth
COMPACTIONS_SHOWN = 5  # of one conversation, the newest, with their losses: some 50 kB each; others have their own page
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, browsers send forms from an origin "null", which is refused
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
}
FORGET_FIELDS = ("tenant", "conversation", "turn", "user", "scope", "older_than", "matching")
SIGN_IN, WRONG_SECRET, FOREIGN_FORM, SILENT_STORE = (
    "This proxy needs its admin token or one of its keys here.",
    "This is neither the admin token of this proxy nor a key that opens a whole tenant.",
    "This form was not sent from a page of this proxy; nothing was done.",
    "The store did not answer, so that nobody can say who is signed in; the log says why.",
)

log = structlog.get_logger()


@frozen
class Reader:
    """Who reads: the request, and who signed in with it (None: nobody)."""

    request: Request
    caller: Caller | None


def application(operations: Sequence[Operation[Any]], guard: Guard, archive: Archive) -> ASGIApp:
    """The page as one ASGI application; it answers everything below /memory but the API."""
    sessions = Sessions(archive.secret(), guard.access, archive.database, archive.clock)
    return PageApplication(operations, guard, sessions).router()


class PageApplication:
    """Views and actions over the operations of the admin API."""

    def __init__(self, operations: Sequence[Operation[Any]], guard: Guard, sessions: Sessions) -> None:
        self._api = Api(operations, guard)
        self._sessions = sessions
        self._feed = Feed()
        self._templates = templates()

    def router(self) -> Router:
        return Router(
            [
                Route(ROOT, lambda _request: RedirectResponse(f"{ROOT}/", 308)),
                Route(f"{ROOT}/sign-in", self._read_by(self._sign_in, takes_form=True), methods=["GET", "POST"]),
                Route(f"{ROOT}/sign-out", self._read_by(self._sign_out, takes_form=True), methods=["POST"]),
                Route(f"{ROOT}/live", self._read_by(self._live)),
                Route(f"{ROOT}/forget", self._read_by(self._forget, takes_form=True), methods=["POST"]),
                *(
                    Route(ROOT + one.path, self._read_by(partial(self._act, one), takes_form=True), methods=["POST"])
                    for one in ACTIONS
                ),
                *(Route(ROOT + view.path, self._read_by(partial(self._view, view))) for view in VIEWS),
                Route(f"{ROOT}/static/{{path:path}}", _Static()),
            ],
            redirect_slashes=False,
            default=self._unknown,
        )

    def _read_by(
        self, respond: Callable[[Reader], Awaitable[Response]], takes_form: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that knows its reader; who that is may be for the store to say. A form must be one of ours."""

        async def answer(request: Request) -> Response:
            try:
                reader = Reader(request, await self._sessions.caller(request.cookies.get(COOKIE, "")))
                if takes_form and request.method == "POST" and not _is_own_form(request):
                    return self._render(reader, "message.html", {"text": FOREIGN_FORM}, 403)
                return await respond(reader)
            except MemoryFault as fault:
                log.warning("a session of the page could not be looked up, or ended", exc_info=fault)
                return self._render(Reader(request, None), "message.html", {"text": SILENT_STORE}, fault.http_status)

        return answer

    async def _view(self, view: View, reader: Reader) -> Response:
        request = reader.request
        is_json = request.query_params.get("format") == "json"
        values: dict[str, Any] = {source.name: None for source in view.sources}
        for source in view.sources:
            if source.needs and not request.query_params.get(source.needs, "").strip():
                continue
            passed = {name: value for name in source.passes if (value := request.query_params.get(name))}
            passed |= {name: request.path_params[name] for name in source.takes}
            answer = await self._ask(reader, "GET", source.path, request.path_params, {**source.given, **passed})
            if answer.status < 400:
                values[source.name] = answer.value
            elif source.needs and answer.status == 400 and not is_json:
                values["refusal"] = answer.error  # beside the form that asked it
            elif not (source.is_optional and answer.status == 403):
                return json_reply(answer.value, answer.status) if is_json else self._failed(reader, answer)
        if view.shows_losses:
            values["losses"] = await self._losses(reader, values["page"]["turns"])
        if is_json:
            return json_reply(values)
        return self._render(reader, view.template, values)

    async def _losses(self, reader: Reader, turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The losses at the newest compactions, by turn."""
        compactions = [one["turn"] for one in turns if one["event"] in COMPACTIONS or one["is_cut"]]
        found = {}
        for turn in compactions[-COMPACTIONS_SHOWN:]:
            answer = await self._ask(reader, "GET", "/turns/{turn}/losses", {"turn": turn}, {})
            if answer.status < 400:
                found[turn] = answer.value
        return found

    async def _live(self, reader: Reader) -> Response:
        request = reader.request
        first = await self._ask(reader, "GET", "/turns", {}, {"limit": "1"})  # whether this reader may
        if first.status >= 400:
            return self._failed(reader, first)
        if self._feed.is_full:
            return self._render(reader, "message.html", {"text": "As many pages are open as may be."}, 503)

        turns = Turns(partial(self._ask, reader, "GET"), self._templates)
        seen = request.headers.get("last-event-id") or request.query_params.get("since", "")
        events = self._feed.events(reader.caller.tenant if reader.caller else "", seen, turns)
        return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")

    async def _forget(self, reader: Reader) -> Response:
        """A preview first; only what was previewed and confirmed is erased."""
        form = await _form(reader.request)
        given: dict[str, Any] = {name: text for name in FORGET_FIELDS if (text := form.get(name, "").strip())}
        is_confirmed = form.get("confirmed") == "yes"
        answer = await self._ask(reader, "POST", "/forget", {}, given | {"dry_run": not is_confirmed})
        if answer.error:
            return self._render(reader, "forget.html", {"given": given, "error": answer.error}, answer.status)
        values = {"given": given, "receipt" if is_confirmed else "preview": answer.value}
        return self._render(reader, "forget.html", values)

    async def _act(self, action: Action, reader: Reader) -> Response:
        request = reader.request
        form = await _form(request)
        back = ROOT + action.then if action.then else _own_page(form.get("back", ""))
        if action.question and form.get("confirmed") != "yes":
            return self._render(reader, "question.html", {"question": action.question, "back": back})
        names = {name: value for name, value in request.path_params.items() if f"{{{name}" in action.path}
        given = {name: value for name, value in names.items() if f"{{{name}}}" not in action.operation}
        in_path = {name: str(value) for name, value in names.items() if name not in given}
        answer = await self._ask(reader, action.method, action.operation, in_path, given)
        return self._failed(reader, answer) if answer.status >= 400 else RedirectResponse(back, 303)

    async def _sign_in(self, reader: Reader) -> Response:
        request = reader.request
        if request.method == "GET":
            return self._render(reader, "sign_in.html", {"text": SIGN_IN, "back": ""})
        form = await _form(request)
        back = form.get("back", "")
        session = self._sessions.begin(form.get("secret", "").strip())
        if not session:
            return self._render(reader, "sign_in.html", {"text": WRONG_SECRET, "back": back}, 401)
        response = RedirectResponse(_own_page(back), 303)
        is_secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        response.set_cookie(
            COOKIE, session, max_age=SESSION_SECONDS, path=ROOT, httponly=True, samesite="strict", secure=is_secure
        )
        return response

    async def _sign_out(self, reader: Reader) -> Response:
        everywhere = (await _form(reader.request)).get("everywhere") == "yes"
        await self._sessions.end(reader.request.cookies.get(COOKIE, ""), everywhere=everywhere)
        response = RedirectResponse(f"{ROOT}/sign-in", 303)
        response.delete_cookie(COOKIE, path=ROOT)
        return response

    async def _unknown(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].startswith(PREFIX):
            await unknown_path(scope, receive, send)
            return
        response = await self._read_by(self._missing)(Request(scope, receive))
        await response(scope, receive, send)

    async def _missing(self, reader: Reader) -> Response:
        return self._render(reader, "message.html", {"text": "There is no such page."}, 404)

    async def _ask(
        self, reader: Reader, method: str, path: str, in_path: Mapping[str, str], given: Mapping[str, Any]
    ) -> Answer:
        return await self._api.call(reader.request, reader.caller, (method, path), in_path, given)

    def _failed(self, reader: Reader, answer: Answer) -> Response:
        if answer.status == 401 or (answer.status == 403 and not reader.caller):
            asked = reader.request.url
            back = asked.path + (asked.query and f"?{asked.query}") if reader.request.method == "GET" else ""
            return self._render(reader, "sign_in.html", {"text": SIGN_IN, "back": back}, 401)
        return self._render(reader, "message.html", {"text": answer.error}, answer.status)

    def _render(self, reader: Reader, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
        query = _Query((name, value) for name, value in reader.request.query_params.items() if name != "format")
        always = {"path": reader.request.url.path, "query": query, "is_signed_in": reader.caller is not None}
        always["is_operator"] = reader.caller is None or not reader.caller.tenant
        text = self._templates.get_template(template).render(always | {"now": datetime.now(UTC)} | dict(values))
        return Response(text, status, HEADERS, "text/html")


@cache
def templates() -> Environment:
    """All templates, compiled once for the process."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= FILTERS
    made.globals |= {"root": ROOT, "compactions": COMPACTIONS}
    for name in made.list_templates():
        made.get_template(name)
    return made


def _is_own_form(request: Request) -> bool:
    """Whether a form was sent from a page of this host, as its browser says; other programs may use the API."""
    if (site := request.headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return bool(origin) and origin.partition("://")[2] == request.headers.get("host")


def _own_page(path: str) -> str:
    """The path of a page, where it is one of these; else of the first one."""
    return path if path.startswith(f"{ROOT}/") and path.isprintable() and "\\" not in path else f"{ROOT}/"


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; the last of those with the same name."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace")))


class _Query(dict[str, str]):
    """The query of a page; what it does not name is empty."""

    def __missing__(self, name: str) -> str:
        return ""


class _Static:
    """The style sheet and the script."""

    def __init__(self) -> None:
        self._files = StaticFiles(directory=HERE / "static")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path_params"]["path"]
        try:
            response = await self._files.get_response(path, scope)
        except HTTPException as error:  # there is no such file, or the method is not one of reading
            response = Response(error.detail, error.status_code)
        response.headers.update({**HEADERS, "cache-control": "max-age=3600"})
        await response(scope, receive, send)
