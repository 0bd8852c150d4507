from pathlib import Path

import pytest
import yaml
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.load import load_bare

from tests.faults.flowing import IMPATIENT
from tests.running import Conversation, Proxy, until


@pytest.fixture
def anyway(tmp_path: Path, upstream: ScriptedUpstream) -> Proxy:
    proxy = Proxy(tmp_path / "data", upstream.url, IMPATIENT)
    upstream.script = lambda _: "hello"
    proxy.words = ["--forward-anyway"]
    return proxy


def readiness(proxy: Proxy) -> str:
    return str(proxy.get("/readyz").json)


@pytest.mark.slow
def test_a_wrong_setting_of_memory_stops_no_request_and_mended_it_takes_effect(anyway: Proxy) -> None:
    good = anyway.config.read_text()
    anyway.config.write_text(yaml.safe_dump(yaml.safe_load(good) | {"recall": {"bogus": 1}}))
    with anyway:
        answered = Conversation(anyway, "sk-a").say("hello")
        assert answered.status == 200 and answered.said("note") == "off"
        until(lambda: "the configuration was refused" in readiness(anyway), "the refusal to be told")
        assert "recall.bogus" in anyway.log.read_text()
        anyway.config.write_text(good)
        until(lambda: Conversation(anyway, "sk-a").say("hello").said("conversation") != "", "memory to be on")


@pytest.mark.slow
def test_a_data_folder_that_cannot_be_used_stops_no_request(anyway: Proxy) -> None:
    anyway.data.rmdir()
    anyway.data.write_text("a file")
    with anyway:
        answered = Conversation(anyway, "sk-a").say("hello")
        assert answered.status == 200 and answered.said("note") == "off"
    assert anyway.data.read_text() == "a file"
    assert "requests pass without memory" in anyway.log.read_text()


@pytest.mark.slow
def test_a_database_that_is_none_stops_no_request(anyway: Proxy) -> None:
    with anyway:
        Conversation(anyway, "sk-a").say("hello")
        anyway.settle()
    (anyway.data / "palimpsest.db").write_bytes(b"no database" * 1000)
    with anyway:
        assert Conversation(anyway, "sk-a").say("hello").status == 200
        assert "store" in readiness(anyway)


@pytest.mark.parametrize(
    "text",
    [
        "upstreams: [{url: nowhere}]",
        "tenants: {statik: me}",
        "{",
        "tenants: {static: me}\nlisten: {host: 0.0.0.0}\nupstreams: [{auth: held, key_env: NOT_SET}]",
    ],
)
def test_who_does_not_know_where_requests_go_or_who_may_send_them_does_not_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(PolicyError):
        load_bare([file], {}, {})


def test_what_is_left_of_a_wrong_configuration_forwards_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("upstreams: [{url: http://gateway:1/v1}]\ntenants: {static: me}\nrecall: {bogus: 1}\nfacts: 7")
    policy = load_bare([file], {"PALIMPSEST_MEMORY__REACH": "bogus"}, {"port": 7})
    assert (policy.upstreams[0].url, policy.tenants.static, policy.listen.port) == ("http://gateway:1/v1", "me", 7)
    assert policy.memory.mode == "off"
