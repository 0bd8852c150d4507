"""What a newly read policy changes at once, what waits for a restart, and what is refused because of what waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.settings.describe import settings_by_path
from palimpsest.settings.policy import Policy
from palimpsest.settings.reloading import AT_RESTART, compare, digest_of


def policy(**settings: Any) -> Policy:
    return Policy.model_validate({"data": Path("/data"), **settings})


def test_what_waits_is_named_and_the_rest_applies() -> None:
    before = policy(listen={"port": 8484})
    loaded = policy(listen={"port": 9000, "workers": 3}, memory={"reach": "tenant"}, log={"level": "error"})
    compared = compare(before, loaded)
    assert compared.changed == ("memory.reach", "log.level")
    assert compared.waiting == ("listen.port", "listen.workers")
    assert compared.policy == policy(listen={"port": 8484}, memory={"reach": "tenant"}, log={"level": "error"})


def test_an_equal_policy_changes_nothing_and_a_port_that_was_taken_for_0_is_the_wanted_one() -> None:
    running = policy(listen={"port": 40000})
    compared = compare(running, policy(listen={"port": 0}))
    assert (compared.policy, compared.changed, compared.waiting) == (running, (), ())


def test_a_policy_that_is_safe_only_at_an_address_that_it_does_not_have_yet_is_refused() -> None:
    key = {"name": "acme", "key_env": "ACME"}
    everybody = {"listen": {"host": "0.0.0.0"}, "upstreams": [{"auth": "held"}], "tenants": {"keys": [key]}}
    alone = {"listen": {"host": "127.0.0.1"}, "upstreams": [{"auth": "held"}]}
    with pytest.raises(PolicyError, match=r"can be reached by others.*until a restart these stay.*listen\.host"):
        compare(policy(**everybody), policy(**alone))


def test_what_waits_is_a_setting() -> None:
    assert set(AT_RESTART) <= set(settings_by_path())


def test_workers_that_act_alike_have_one_digest() -> None:
    digests = {digest_of(policy(listen={"port": port})) for port in (1, 2)}
    assert len(digests) == 1 and len(digests.pop()) == 12
    assert digest_of(policy()) != digest_of(policy(memory={"reach": "tenant"}))
