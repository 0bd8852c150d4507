"""A running proxy with several workers takes a new policy in all of them, and no request notices."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
import yaml
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import Answered, Proxy, request, until, upstream_on_a_thread

pytestmark = pytest.mark.slow

WORKERS = 2
LOOKS = 8  # over connections of their own, so that each worker is asked


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("reload")
    scripted = ScriptedUpstream(lambda _: "before")
    with upstream_on_a_thread(scripted), Proxy(folder / "data", "", settings_of(scripted.url)) as running:
        yield running


def settings_of(url: str, **memory: object) -> Json:
    return {"listen": {"workers": WORKERS}, "upstreams": [{"url": url}], "memory": {"deadline_ms": 10_000, **memory}}


def write(proxy: Proxy, settings: Json) -> None:
    """As Kubernetes does: the name leads to another file from one moment to the next."""
    version = proxy.config.with_suffix(f".{len(list(proxy.config.parent.iterdir()))}")
    version.write_text(yaml.safe_dump(settings))
    link = proxy.config.with_suffix(".new")
    link.symlink_to(version.name)
    link.replace(proxy.config)


def policies(proxy: Proxy) -> list[Json]:
    return [proxy.get("/memory/v1/policy").json for _ in range(LOOKS)]


def reload(proxy: Proxy) -> Answered:
    return request(proxy.port, "POST", "/memory/v1/reload", b"{}")


def in_force(proxy: Proxy, reach: str) -> list[Json]:
    """The policies of all workers, once each says this."""

    def look() -> list[Json]:
        found = policies(proxy)
        return found if all(told["policy"]["memory"]["reach"] == reach for told in found) else []

    return until(look, f"memory.reach to be {reach} in all workers")


def test_every_worker_takes_what_the_file_says_and_they_agree_on_its_number(proxy: Proxy) -> None:
    url = yaml.safe_load(proxy.config.read_text())["upstreams"][0]["url"]
    for reach in ("tenant", "conversation"):
        write(proxy, settings_of(url, reach=reach))
        until(
            lambda reach=reach: len({(p["generation"], p["digest"]) for p in in_force(proxy, reach)}) == 1, "one number"
        )
        number = policies(proxy)[0]["generation"]
        until(lambda number=number: proxy.metric("palimpsest_policy_generation") == number, "the metric to follow")


def test_a_file_that_is_refused_is_said_everywhere_and_changes_nothing(proxy: Proxy) -> None:
    before, good = policies(proxy)[0]["generation"], yaml.safe_load(proxy.config.read_text())
    write(proxy, good | {"memory": {"reach": "nowhere"}})
    answered = reload(proxy)
    assert answered.status == 422
    assert "memory.reach: 'nowhere' is not allowed; allowed: conversation | user | tenant" in answered.json["reason"]
    assert str(proxy.config) in answered.json["reason"]
    until(lambda: proxy.metric("palimpsest_policy_last_reload_successful") == 0, "the metric to say so")

    def is_said() -> bool:
        return all("the configuration was refused" in str(proxy.ready()["reasons"]) for _ in range(LOOKS))

    until(is_said, "all workers to say so")
    assert proxy.ready()["ready"]
    assert {p["generation"] for p in policies(proxy)} == {before}
    write(proxy, good)
    until(lambda: proxy.metric("palimpsest_policy_last_reload_successful") == 1, "it to be forgiven")


def test_what_needs_a_restart_is_named_in_the_answer(proxy: Proxy) -> None:
    good = yaml.safe_load(proxy.config.read_text())
    write(proxy, good | {"listen": {"workers": 5}})
    answered = reload(proxy)
    assert (answered.status, answered.json["at_restart"]) == (200, ["listen.workers"])
    write(proxy, good)


def test_a_stream_that_began_ends_with_the_upstream_that_it_began_with(proxy: Proxy) -> None:
    good, heard = yaml.safe_load(proxy.config.read_text()), list[Answered]()
    old, new = ScriptedUpstream(lambda _: Reply("told by the old one " * 20, lockstep=True)), ScriptedUpstream()
    new.script = lambda _: "told by the new one"
    body: Json = {"model": "gpt-4o", "messages": [{"role": "user", "content": "tell me"}]}
    with upstream_on_a_thread(old), upstream_on_a_thread(new):
        write(proxy, good | {"upstreams": [{"url": old.url}]})
        in_force_upstream(proxy, old.url)
        asking = threading.Thread(target=lambda: heard.append(proxy.chat(body | {"stream": True})))
        asking.start()
        until(lambda: old.received, "the request to arrive")
        write(proxy, good | {"upstreams": [{"url": new.url}]})
        in_force_upstream(proxy, new.url)
        assert {proxy.chat(body).text for _ in range(LOOKS)} == {"told by the new one"}
        old.permit(1000)
        asking.join()
        assert heard[0].text == "told by the old one " * 20 and not heard[0].broken
        write(proxy, good)
        in_force_upstream(proxy, good["upstreams"][0]["url"])


def in_force_upstream(proxy: Proxy, url: str) -> None:
    def look() -> bool:
        return all(told["policy"]["upstreams"][0]["url"] == url for told in policies(proxy))

    until(look, f"all workers to know {url}")


def test_a_hangup_of_the_parent_reaches_every_worker_and_replaces_none(proxy: Proxy) -> None:
    assert proxy.process is not None
    good = yaml.safe_load(proxy.config.read_text())
    write(proxy, good | {"memory": {"reach": "nowhere"}})
    proxy.process.send_signal(signal.SIGHUP)
    until(lambda: proxy.metric("palimpsest_policy_last_reload_successful") == 0, "all workers to have read it")
    write(proxy, good)
    proxy.process.send_signal(signal.SIGHUP)
    until(lambda: proxy.metric("palimpsest_policy_last_reload_successful") == 1, "all workers to have read it")
    assert proxy.log.read_text().count("Started server process") == WORKERS


def test_the_record_of_a_decision_names_the_policy(proxy: Proxy) -> None:
    answered = proxy.chat({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}, "sk-mine")
    turn = answered.said("turn")
    found = until(lambda: proxy.get(f"/memory/v1/turns/{turn}").json.get("explain"), "the turn to be archived")
    assert found["policy"] == policies(proxy)[0]["generation"]
