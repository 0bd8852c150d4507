"""The page in a real browser: nothing that was archived is run, nobody else is asked, and a keyboard is enough."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.features.page.live import READERS
from palimpsest.features.page.views import LIVE_TURNS, VIEWS
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect, sync_playwright

from tests.edge.browser import chromium
from tests.running import PATIENCE_SECONDS, Conversation, Proxy, upstream_on_a_thread

pytestmark = pytest.mark.slow

HOSTILE = (
    "<script>window.ran = 1</script><img src='http://evil.example/pixel' onerror='window.ran = 2'>"
    " ![pixel](http://evil.example/image.png) [here](javascript:window.ran=3)"
    " \x1b[31mred \u202egnp.exe </textarea></pre></ins><iframe src='http://evil.example/'></iframe> {{ 7 * 7 }}"
)
PORT = "We decided that the staging database listens on port 7431."
PATHS = [*(view.path for view in VIEWS), "/search?q=staging+database"]
SCHEMES, WIDTHS = ("light", "dark"), (1280, 390)
RATE, STORM = 50, 150  # requests a second, and of all
SEES = """() => {
  window.turns = new Set();
  const rows = document.querySelector("tbody");
  const look = () => rows.querySelectorAll("a[href*='/turns/']").forEach((one) => turns.add(one.href));
  look();
  new MutationObserver(look).observe(rows, { childList: true });
  return turns.size;
}"""
SERIOUS = ("serious", "critical")
PATIENCE_MS = 1000 * PATIENCE_SECONDS


@dataclass
class House:
    """A running proxy with a compacted conversation in it, hostile text among it."""

    proxy: Proxy
    upstream: ScriptedUpstream
    conversation: str
    turn: str

    def path(self, path: str) -> str:
        return f"/memory{path}".replace("{conversation}", self.conversation).replace("{turn}", self.turn)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        upstream_on_a_thread(ScriptedUpstream(lambda _body: f"Noted: {HOSTILE}")) as upstream,
        Proxy(tmp_path_factory.mktemp("page") / "data", f"{upstream.url}/v1") as proxy,
    ):
        talk = Conversation(proxy, "sk-test")
        for text in (PORT, f"Look at this: {HOSTILE}", "And what about the mail step of the worker?", "Go on, please."):
            talk.say(text)
        proxy.settle()
        talk.keep_last(2, f"Summary: {HOSTILE}")
        said = talk.say("Which port does the staging database listen on?")
        proxy.settle()
        yield House(proxy, upstream, said.said("conversation"), said.said("turn"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield running
        running.close()


@dataclass
class Watched:
    """A tab, and what went wrong in it."""

    page: Page
    wrong: list[str] = field(default_factory=list)  # messages of the console, errors, and whom else it asked


@pytest.fixture
def context(browser: Browser, house: House) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=house.proxy.url)
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def tab(context: BrowserContext, house: House) -> Iterator[Watched]:
    watched = watch(context, house)
    yield watched
    assert watched.wrong == []


@pytest.fixture(scope="module")
def only_tab(browser: Browser, house: House) -> Iterator[Watched]:
    """For page after page: it takes the browser longer to make a tab than to open ten of them."""
    context = browser.new_context(base_url=house.proxy.url)
    context.set_default_timeout(PATIENCE_MS)
    yield watch(context, house)
    context.close()


def watch(context: BrowserContext, house: House) -> Watched:
    watched, own = Watched(context.new_page()), urlsplit(house.proxy.url).netloc
    watched.page.on("console", lambda one: watched.wrong.append(one.text) if one.type in ("error", "warning") else None)
    watched.page.on("pageerror", lambda error: watched.wrong.append(str(error)))
    watched.page.on("request", lambda one: watched.wrong.append(one.url) if urlsplit(one.url).netloc != own else None)
    return watched


def problems(page: Page) -> list[Any]:
    """What makes a page hard to use for people with disabilities, as far as a program can tell."""
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found if one["impact"] in SERIOUS]


@pytest.mark.parametrize("path", PATHS)
def test_every_page_opens_runs_nothing_archived_and_asks_nobody_else(
    house: House, only_tab: Watched, path: str
) -> None:
    tab = only_tab
    tab.wrong.clear()
    tab.page.goto(house.path(path))
    for scheme, width in product(SCHEMES, WIDTHS):  # the style alone goes by them, and no script
        tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        tab.page.set_viewport_size({"width": width, "height": 900})
        expect(tab.page.locator("h1")).to_be_visible()
        assert tab.page.evaluate("window.ran") is None
        assert tab.page.locator("main img, main iframe, main script").count() == 0
        assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the screen"
        assert problems(tab.page) == []
    assert tab.wrong == []


def test_archived_text_stands_on_the_page_letter_for_letter_but_for_signs_that_are_obeyed(
    house: House, tab: Watched
) -> None:
    tab.page.goto(house.path("/turns/{turn}"))
    shown = tab.page.locator("article pre").all_inner_texts()
    wanted = HOSTILE.replace("\x1b", "\u25a1").replace("\u202e", "\u25a1")
    assert any(wanted in text for text in shown)


def test_what_is_searched_for_is_found_and_brought_back_or_not(house: House, tab: Watched) -> None:
    tab.page.goto(f"/memory/search?conversation={house.conversation}")
    tab.page.get_by_label("For").fill("which port does the staging database listen on?")
    tab.page.get_by_label("For").press("Enter")
    found = tab.page.locator(".results > li", has_text=PORT).first
    found.get_by_role("button", name="Bring back").click()
    expect(found.get_by_role("button", name="withdraw")).to_be_visible()
    tab.page.goto(house.path("/conversations/{conversation}"))
    waiting = tab.page.locator("form.notice")
    expect(waiting).to_contain_text(PORT)
    waiting.get_by_role("button", name="withdraw").click()
    expect(waiting).to_have_count(0)


@pytest.mark.parametrize("runs_scripts", [True, False])
def test_what_is_forgotten_is_shown_first_confirmed_and_receipted(
    house: House, browser: Browser, runs_scripts: bool
) -> None:
    said = Conversation(house.proxy, "sk-test").say(f"Forget me soon, number {runs_scripts}.")
    house.proxy.settle()
    context = browser.new_context(base_url=house.proxy.url, java_script_enabled=runs_scripts)
    tab = watch(context, house)
    tab.page.goto("/memory/forget")
    tab.page.get_by_label("Conversation").fill(said.said("conversation"))
    tab.page.get_by_role("button", name="Show what this would erase").click()
    expect(tab.page.get_by_role("alert")).to_contain_text("1 turns")
    tab.page.get_by_role("button", name="Erase it").click()
    expect(tab.page.locator("pre")).to_contain_text("signature")
    tab.page.goto(f"/memory/conversations/{said.said('conversation')}")
    expect(tab.page.get_by_role("alert")).to_contain_text("no such conversation")
    context.close()
    assert [one for one in tab.wrong if "404" not in one] == []


def test_every_page_can_be_read_without_a_script(house: House, browser: Browser) -> None:
    context = browser.new_context(base_url=house.proxy.url, java_script_enabled=False)
    tab = watch(context, house)
    for path, words in (("/", "staging database"), ("/conversations/{conversation}", "came back"), ("/search", "For")):
        tab.page.goto(house.path(path))
        expect(tab.page.locator("main")).to_contain_text(words)
    context.close()
    assert tab.wrong == []


def test_a_keyboard_is_enough(house: House, tab: Watched) -> None:
    tab.page.goto("/memory/")
    press = tab.page.keyboard.press
    press("Tab")
    expect(tab.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    press("Enter")
    assert tab.page.url.endswith("#main")
    tab.page.goto("/memory/search")
    for _ in range(30):
        press("Tab")
        if tab.page.evaluate("document.activeElement.name") == "q":
            break
    tab.page.keyboard.type("staging database")
    press("Enter")
    expect(tab.page.locator(".results > li").first).to_contain_text("7431")
    for _ in range(60):
        press("Tab")
        if tab.page.evaluate("document.activeElement.innerText").startswith("\u21a9"):
            break
    press("Enter")
    withdraw = tab.page.get_by_role("button", name="withdraw").first
    withdraw.focus()
    press("Enter")
    expect(tab.page.get_by_role("button", name="withdraw")).to_have_count(0)


def test_of_fifty_requests_a_second_each_is_seen_on_the_page_or_counted(house: House, tab: Watched) -> None:
    house.proxy.settle()
    tab.page.goto("/memory/")
    expect(tab.page.locator("tbody tr").first).to_be_visible()
    before, begun = tab.page.evaluate(SEES), time.monotonic()

    def call(number: int) -> int:
        time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        return Conversation(house.proxy, "sk-test").say(f"Storm {number}.").status

    with ThreadPoolExecutor(10) as callers:
        assert {*callers.map(call, range(STORM))} == {200}
    Conversation(house.proxy, "sk-test").say("The storm is over.")
    expect(tab.page.locator("tbody tr:not(.more)").first).to_contain_text("The storm is over.")
    missed = [int(text.partition(" ")[0]) for text in tab.page.locator("tbody tr.more b").all_inner_texts()]
    assert tab.page.evaluate("turns.size") - before + sum(missed) == STORM + 1
    assert tab.page.locator("tbody tr:not(.more)").count() == int(LIVE_TURNS)


def test_viewers_who_read_nothing_hinder_no_request_and_are_bounded(house: House) -> None:
    hanging = [socket.create_connection(("127.0.0.1", house.proxy.port)) for _ in range(READERS + 5)]
    try:
        for one in hanging:
            one.sendall(b"GET /memory/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        statuses = [Conversation(house.proxy, "sk-test").say(f"Beside viewers, {n}.").status for n in range(20)]
        assert statuses == [200] * 20
        firsts = [one.recv(64) for one in hanging]
        assert {first.split(b" ")[1] for first in firsts} == {b"200", b"503"}
        assert sum(b" 200 " in first for first in firsts) <= READERS
    finally:
        for one in hanging:
            one.close()
    assert house.proxy.get("/memory/").status == 200


def test_a_reader_signs_in_with_the_token_and_out_again(browser: Browser, tmp_path: Path) -> None:
    token = "a-token-of-more-than-sixteen-signs"
    with (
        upstream_on_a_thread(ScriptedUpstream()) as upstream,
        Proxy(tmp_path / "data", f"{upstream.url}/v1", PALIMPSEST_ADMIN_TOKEN=token) as proxy,
    ):
        context = browser.new_context(base_url=proxy.url)
        page = context.new_page()
        page.goto("/memory/conversations")
        page.get_by_label("Token or key").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()
        assert page.url.endswith("/memory/conversations")  # the page that was asked for
        assert problems(page) == []
        page.get_by_role("button", name="Sign out", exact=True).click()
        expect(page.get_by_label("Token or key")).to_be_visible()
        context.close()


def test_the_first_page_is_small(house: House, tab: Watched) -> None:
    answers: list[Response] = []
    tab.page.on("response", lambda answer: answers.append(answer))
    tab.page.goto("/memory/", wait_until="load")
    assert 0 < sum(len(answer.body()) for answer in answers if "/live" not in answer.url) < 60_000


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without a browser, nothing here is tried."""
    return Path(chromium())
