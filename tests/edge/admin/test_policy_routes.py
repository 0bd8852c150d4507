"""The policy in force, as operators see it."""

from __future__ import annotations

import orjson
from palimpsest.settings.policy import KeyPolicy, Policy, TenantPolicy, UpstreamPolicy

from tests.edge.admin.asking import ACME, House


async def test_the_policy_is_shown_with_its_generation_and_to_the_operator_only(house: House) -> None:
    said = await house.get("policy")
    assert (said["generation"], said["policy"]) == (1, orjson.loads(house.reload.policy.model_dump_json()))
    assert (await house.ask("/memory/v1/policy", ACME))[0] == 403


async def test_no_secret_is_shown_whatever_its_name(house: House) -> None:
    settings = {"extra_headers": {"x-pass": "hunter2"}, "timeout": 7, "vertex": ["hunter2"], "a": "os.environ/KEY_A"}
    house.reload.policy = Policy(
        upstreams=(UpstreamPolicy(litellm="anthropic/*", settings=settings),),
        tenants=TenantPolicy(keys=(KeyPolicy(name="acme", key_env="ACME_KEY"),)),
    )
    said = await house.get("policy")
    assert said["policy"]["tenants"]["keys"][0]["key_env"] == "ACME_KEY"
    assert said["policy"]["upstreams"][0]["settings"] == {
        "extra_headers": {"x-pass": "[withheld]"},
        "timeout": 7,
        "vertex": ["[withheld]"],
        "a": "os.environ/KEY_A",
    }


async def test_a_reload_says_what_became_of_it_and_is_the_operators(house: House) -> None:
    status, said = await house.ask("/memory/v1/reload", method="POST", body={})
    assert (status, said["accepted"], said["reason"], said["changed"], said["generation"]) == (200, True, "", [], 1)
    assert (await house.get("policy"))["last_reload"] == said
    assert (await house.ask("/memory/v1/reload", ACME, method="POST", body={}))[0] == 403


async def test_memory_is_switched_off_and_on(house: House) -> None:
    _, said = await house.ask("/memory/v1/disable", method="POST", body={"tenant": "acme", "reason": "they asked"})
    assert [(off["tenant"], off["reason"]) for off in said["switched_off"]] == [("key:acme", "they asked")]
    assert (await house.get("stats"))["switched_off"] == said["switched_off"]
    _, said = await house.ask("/memory/v1/enable", method="POST", body={"tenant": "acme"})
    assert said == {"switched_off": []}
    assert (await house.ask("/memory/v1/disable", ACME, method="POST", body={}))[0] == 403
