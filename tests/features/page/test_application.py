"""The page: projections of the admin API, for who may ask it; archived text is text, and nothing is erased unasked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import pytest
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.edge.access import Access
from palimpsest.features.page.application import FORM_BYTES, application
from palimpsest.features.page.views import LIVE_TURNS, VIEWS
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal

from tests.databases import database_in
from tests.edge.admin.asking import ACME, AT_HOME, LOCAL, House
from tests.edge.admin.conftest import inhabited, inhabited_database
from tests.talking import Talk

__all__ = ["inhabited", "inhabited_database"]

OWN_FORM = {**LOCAL, "sec-fetch-site": "same-origin"}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> \x1b[31m \u202egnp.exe"


@pytest.fixture
def home(inhabited: Database) -> House:
    """On loopback, where nobody signs in."""
    return House(inhabited, AT_HOME, page=application)


@pytest.fixture
def house(inhabited: Database) -> House:
    """Bound to the world, with a token and the key of the first tenant."""
    return House(inhabited, page=application)


async def post(
    house: House, path: str, form: Mapping[str, str], headers: Mapping[str, str] = OWN_FORM
) -> tuple[int, str]:
    return await house.ask(f"/memory/{path}", headers, "POST", urlencode(form).encode())


@pytest.mark.parametrize("path", [view.path for view in VIEWS if "{" not in view.path and view.path != "/policy"])
async def test_every_page_is_shown_as_html_and_as_json(home: House, path: str) -> None:
    status, text = await home.ask(f"/memory{path}", LOCAL)
    assert (status, text.startswith("<!doctype html>")) == (200, True)
    status, value = await home.ask(f"/memory{path}?format=json", LOCAL)
    assert status == 200
    assert isinstance(value, dict)


async def test_a_page_lets_a_browser_run_its_own_script_and_ask_this_host_only(home: House) -> None:
    await home.ask("/memory/", LOCAL)
    rules = home.headers[b"content-security-policy"].decode()
    assert rules.startswith("default-src 'none'")
    assert "unsafe" not in rules
    assert {source for source in re.findall(r"'[\w-]+'|https?:\S*|\*", rules)} == {"'none'", "'self'"}


async def test_archived_text_is_shown_as_text(home: House, inhabited: Database) -> None:
    said = await Talk(Journal(inhabited), "key:acme", "c-evil").say(HOSTILE, HOSTILE)
    for path in ("conversations/c-evil", "conversations", "", f"turns/{said.turn.id}"):
        status, text = await home.ask(f"/memory/{path}", LOCAL)
        assert status == 200
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text.replace("\r", ""))
    assert "&lt;script&gt;alert(1)" in text


async def test_who_may_not_ask_the_api_sees_the_form_to_sign_in(house: House) -> None:
    for path in ("", "conversations", "turns/turn-1", "live", "forget"):
        status, text = await house.ask(f"/memory/{path}", {"host": "proxy.example"})
        assert status == 401
        assert "first in" not in text
        assert 'name="secret"' in text


async def test_a_program_asks_a_page_for_json_as_it_asks_the_api(house: House) -> None:
    host = {"host": "proxy.example"}
    status, value = await house.ask("/memory/conversations?format=json", host)
    assert (status, "send the admin token" in value["error"]["message"]) == (401, True)
    status, value = await house.ask("/memory/conversations?format=json", host | {"authorization": "Bearer t0ken"})
    assert (status, "first in" in str(value)) == (200, True)
    status, value = await house.ask("/memory/conversations?format=json", host | ACME)
    assert (status, {one["tenant"] for one in value["page"]["conversations"]}) == (200, {"key:acme"})
    assert (await house.ask("/memory/conversations", host | ACME))[0] == 401, "a page is for who signed in"


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("/memory/turns/turn-1?tenant=a", "/memory/turns/turn-1?tenant=a"),
        ("", "/memory/"),
        ("https://elsewhere.example/memory/", "/memory/"),
        ("//elsewhere.example/memory/", "/memory/"),
        ("/memory/\\elsewhere.example", "/memory/"),
    ],
)
async def test_who_signs_in_goes_on_to_the_page_that_was_asked_for_and_to_no_other_host(
    house: House, asked: str, shown: str
) -> None:
    host = {"host": "proxy.example", "sec-fetch-site": "same-origin"}
    if asked.startswith("/memory/turns"):
        form = f'name="back" value="{asked}"'
        assert form in (await house.ask(asked, host))[1]
        assert form in (await post(house, "sign-in", {"secret": "no", "back": asked}, host))[1]
    assert (await post(house, "sign-in", {"secret": "t0ken", "back": asked}, host))[0] == 303
    assert house.headers[b"location"].decode() == shown


async def test_who_reads_one_tenant_is_not_led_to_the_policy(house: House) -> None:
    host = {"host": "proxy.example", "sec-fetch-site": "same-origin"}
    for secret, is_led in (("acme-key", False), ("t0ken", True)):
        await post(house, "sign-in", {"secret": secret}, host)
        session = host | {"cookie": house.headers[b"set-cookie"].decode().partition(";")[0]}
        assert ("/memory/policy" in (await house.ask("/memory/conversations", session))[1]) is is_led


async def test_where_facts_are_off_the_page_says_so(home: House) -> None:
    assert "Facts are off" in (await home.ask("/memory/facts", LOCAL))[1]


async def test_a_session_opens_what_its_key_opens_and_ends_when_it_is_ended(house: House) -> None:
    host = {"host": "proxy.example", "sec-fetch-site": "same-origin"}
    assert (await post(house, "sign-in", {"secret": "wrong"}, host))[0] == 401
    status, _ = await post(house, "sign-in", {"secret": "acme-key"}, host)
    assert status == 303
    cookie = house.headers[b"set-cookie"].decode()
    assert {"HttpOnly", "SameSite=strict", "Path=/memory"} <= {part.strip() for part in cookie.split(";")}
    assert "acme-key" not in cookie
    session = host | {"cookie": cookie.partition(";")[0]}
    status, text = await house.ask("/memory/conversations", session)
    assert status == 200
    assert "first in c-1" in text
    assert "not yours" not in text, "another tenant's"
    assert (await post(house, "sign-out", {}, session | {"sec-fetch-site": "cross-site"}))[0] == 403
    assert (await house.ask("/memory/conversations", session))[0] == 200, "a form of another site ends nothing"
    await post(house, "sign-out", {}, session)
    assert b"Max-Age=0" in house.headers[b"set-cookie"], "the browser drops it"
    assert (await house.ask("/memory/conversations", session))[0] == 401, "who copied it has nothing"


async def test_signing_out_everywhere_ends_the_sessions_of_one_key_in_every_process(
    house: House, inhabited: Database
) -> None:
    host = {"host": "proxy.example", "sec-fetch-site": "same-origin"}

    async def signed_in(secret: str) -> Mapping[str, str]:
        await post(house, "sign-in", {"secret": secret}, host)
        return host | {"cookie": house.headers[b"set-cookie"].decode().partition(";")[0]}

    here, there, other = [await signed_in(secret) for secret in ("acme-key", "acme-key", "t0ken")]
    await post(house, "sign-out", {"everywhere": "yes"}, here)
    elsewhere = House(inhabited, page=application)
    statuses = [(await elsewhere.ask("/memory/conversations", one))[0] for one in (here, there, other)]
    assert statuses == [401, 401, 200]


async def test_a_session_opens_nothing_while_the_store_does_not_answer(house: House, inhabited: Database) -> None:
    host = {"host": "proxy.example", "sec-fetch-site": "same-origin"}
    await post(house, "sign-in", {"secret": "t0ken"}, host)
    session = host | {"cookie": house.headers[b"set-cookie"].decode().partition(";")[0]}
    await inhabited.close()
    status, text = await house.ask("/memory/health", session)
    assert (status, "The store did not answer" in text) == (503, True)


async def test_a_session_is_good_in_every_process_and_ends_with_its_token(house: House, inhabited: Database) -> None:
    host = {"host": "proxy.example", "sec-fetch-site": "same-origin"}
    await post(house, "sign-in", {"secret": "t0ken"}, host)
    session = host | {"cookie": house.headers[b"set-cookie"].decode().partition(";")[0]}
    for token, status in (("t0ken", 200), ("another", 401)):
        other = House(inhabited, Access(token, ProxyKeys({}), is_loopback=False), page=application)
        assert (await other.ask("/memory/conversations", session))[0] == status


async def test_of_several_tenants_one_is_chosen_to_search(home: House) -> None:
    status, text = await home.ask("/memory/search?q=port", LOCAL)
    assert status == 200 and 'role="alert">tenant is required' in text and '<select name="tenant"' in text
    status, text = await home.ask("/memory/search", LOCAL)
    found = re.findall(r'<option value="([^"]+)"( selected)?>', text)
    assert status == 200 and len(found) == 2 and not any(selected for _, selected in found)
    for tenant, _ in found:
        status, text = await home.ask(f"/memory/search?q=port&tenant={tenant}", LOCAL)
        assert (status, f'<option value="{tenant}" selected>' in text) == (200, True)


async def test_one_request_and_one_conversation_are_counted_in_the_singular(home: House) -> None:
    for path in ("", "search"):
        _, shown = await home.ask(f"/memory/{path}", LOCAL)
        assert re.search(r"\b1 (?:request|conversation)\b", shown) and not re.search(r"\b1 \w+s\b", shown)


async def test_an_empty_archive_can_be_searched_and_its_first_page_follows_what_comes(tmp_path: Path) -> None:
    database = database_in(tmp_path, "empty.db")
    await database.open()
    empty = House(database, AT_HOME, page=application)
    status, text = await empty.ask("/memory/search?q=port", LOCAL)
    assert (status, "nothing is stored yet" in text) == (200, True)
    status, text = await empty.ask("/memory/", LOCAL)
    assert (status, 'data-live="/memory/live"' in text, "No request has passed yet" in text) == (200, True, True)
    await database.close()


@pytest.mark.slow
async def test_what_passed_between_two_looks_is_counted(home: House, inhabited: Database) -> None:
    talk = Talk(Journal(inhabited), "key:acme", "c-fast")
    first = await talk.say("The first of many.")
    for number in range(int(LIVE_TURNS) + 5):
        await talk.say(f"Number {number}.")
    seen = (first.turn.id, f"{first.turn.id}:9", "turn-erased")
    answers = await asyncio.gather(*(home.ask(f"/memory/live?since={one}", LOCAL) for one in seen))
    missed = [re.findall(r"<b>(\d+) requests passed", text) for _, text in answers]
    assert missed == [["5"], ["14"], []], "since then; beside those before; what is not there counts nothing"


async def test_forgetting_shows_first_what_would_go_and_erases_what_is_confirmed(home: House) -> None:
    before = await home.conversations()
    status, text = await post(home, "forget", {"conversation": "c-1", "tenant": "key:acme"})
    assert status == 200
    assert "would be erased" in text
    assert await home.conversations() == before
    status, text = await post(home, "forget", {"conversation": "c-1", "tenant": "key:acme", "confirmed": "yes"})
    assert status == 200
    assert "signature" in text
    assert await home.conversations() == before - 1


async def test_a_fact_is_forgotten_only_when_that_is_confirmed(home: House) -> None:
    status, text = await post(home, "facts/f-1/forget", {})
    assert status == 200
    assert "for good?" in text
    status, text = await post(home, "facts/f-1/forget", {"confirmed": "yes"})
    assert status == 404, "no such fact: it was looked for now"
    assert "no such fact" in text


@pytest.mark.parametrize(
    ("back", "leads_to"),
    [
        ("/memory/conversations/c-1", "/memory/conversations/c-1"),
        ("https://evil.example/", "/memory/"),
        ("", "/memory/"),
    ],
)
async def test_a_lost_passage_is_asked_for_and_withdrawn(home: House, back: str, leads_to: str) -> None:
    memory = (await home.get("memories?conversation=c-1", LOCAL))["memories"][0]["memory"]
    assert (await post(home, f"reminders/{memory}", {"back": back}))[0] == 303
    assert home.headers[b"location"].decode() == leads_to
    _, text = await home.ask("/memory/conversations/c-1", LOCAL)
    assert f"reminders/{memory}/withdraw" in text
    await post(home, f"reminders/{memory}/withdraw", {})
    _, text = await home.ask("/memory/conversations/c-1", LOCAL)
    assert f"reminders/{memory}/withdraw" not in text


@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}])
async def test_a_form_of_another_site_does_nothing(home: House, headers: Mapping[str, str]) -> None:
    before = await home.conversations()
    form = {"conversation": "c-1", "tenant": "key:acme", "confirmed": "yes"}
    assert (await post(home, "forget", form, LOCAL | headers))[0] == 403
    assert (await post(home, "facts/1/forget", {}, LOCAL | headers))[0] == 403
    assert await home.conversations() == before


async def test_a_form_that_names_nothing_erases_nothing(home: House) -> None:
    before = await home.conversations()
    for form in ({"confirmed": "yes"}, {"matching": "x" * FORM_BYTES, "confirmed": "yes"}):
        status, _ = await post(home, "forget", form)
        assert status == 400
    assert await home.conversations() == before


async def test_what_is_not_there_is_said_so_and_the_api_keeps_its_own_answers(home: House) -> None:
    assert (await home.ask("/memory/nope", LOCAL))[0] == 404
    assert (await home.ask("/memory/turns/nope", LOCAL))[0] == 404
    status, value = await home.ask("/memory/v1/nope", LOCAL)
    assert (status, list(value)) == (404, ["error"])
    assert (await home.ask("/memory", LOCAL))[0] == 308


async def test_the_style_sheet_and_the_script_are_served_and_nothing_beside_them(home: House) -> None:
    for name in ("page.css", "page.js", "icon.svg"):
        assert (await home.ask(f"/memory/static/{name}", LOCAL))[0] == 200
    assert (await home.ask("/memory/static/../application.py", LOCAL))[0] == 404


async def test_a_key_in_a_header_is_no_session(house: House) -> None:
    before = await house.conversations()
    headers = ACME | {"sec-fetch-site": "same-origin"}
    assert (await post(house, "forget", {"conversation": "c-1", "confirmed": "yes"}, headers))[0] == 401, "no session"
    assert await house.conversations() == before
