"""Compactions by a box: answered there, written out for the provider here, and refused in the same words."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.remote.boxes import box, key_of, laptop, root_of, settle
from tests.running import Proxy, memory_in
from tests.test_pipeline_compaction import PREFIX, TRIGGER, asked, item_of, message, refused
from tests.test_pipeline_responses import FERRY, READ, Caller, talk, user

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]


def answering(folder: Path) -> Proxy:
    """A box that answers compactions, not yet started."""
    home = box(folder)
    home.config.write_text(home.config.read_text().replace("memory:", "memory:\n  compaction: answer", 1))
    return home


def test_a_box_answers_compactions_and_while_it_is_away_no_item_reaches_the_provider(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda body: FERRY if len(body["input"]) == 1 else "That is noted and will be kept in mind."
    with answering(tmp_path) as home, laptop(tmp_path, upstream.url, root_of(home), key_of(home)) as here:
        caller = Caller(here, "sk-provider")
        history = talk(caller, 3)
        settle(here, home)
        item = item_of(caller.send([*history, TRIGGER], tools=[READ]).json)
        assert upstream.received[-1].json["input"][-1] != TRIGGER, "the provider was asked"
        settle(here, home)
        caller.send([item, user("Go on.")])
        assert FERRY in memory_in(upstream.received[-1].json) and PREFIX not in upstream.received[-1].body.decode()
        forged = item | {"encrypted_content": item["encrypted_content"][:-4] + "AAAA"}
        assert refused(caller, [forged, user("Go on.")])["code"] == "compaction_item_invalid"
        home.stop()
        caller.send([item, user("Go on.")])
        sent = upstream.received[-1].body.decode()
        assert PREFIX not in sent and "cannot be read now" in sent


def test_a_box_makes_anthropics_edit(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = lambda _: "That is noted and will be kept in mind."
    with answering(tmp_path) as home, laptop(tmp_path, upstream.url, root_of(home), key_of(home)) as here:
        history = [{"role": "user", "content": f"{FERRY} " * 1_000}, {"role": "assistant", "content": "Noted."}]
        body = asked([*history, {"role": "user", "content": "Go on."}])
        compaction, said = message(here, "sk-provider", body)["content"]
        assert compaction["content"].startswith(PREFIX) and said["type"] == "text"
        assert len(upstream.received[-1].json["messages"]) == 2
        assert len(upstream.received[-1].body) < len(orjson.dumps(body)) / 2
