"""A running proxy can read its policy anew from where its start had it, and sees when that changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.settings.policy import Policy, settings_by_path
from palimpsest.settings.source import AT_RESTART, NO_SOURCE, Source, compare, digest_of, handed_over, source_of


def test_file_environment_and_flags_are_read_as_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("memory: {reach: tenant}\nlisten: {port: 1}")
    source = source_of([file], {}, {"port": 2, "host": None})
    policy = source.load({"PALIMPSEST_MEMORY__DEADLINE_MS": "7"})
    assert (policy.memory.reach, policy.listen.port, policy.memory.deadline_ms) == ("tenant", 2, 7)


def test_the_variable_names_the_files_where_no_flag_does_and_a_preset_is_found(tmp_path: Path) -> None:
    mine = tmp_path / "p.yaml"
    preset, file = source_of(None, {"PALIMPSEST_CONFIG": f"personal,{mine}"}, {}).files
    assert preset.is_file() and preset.is_absolute() and file == mine
    assert source_of([Path("personal")], {"PALIMPSEST_CONFIG": str(mine)}, {}).files == (preset,)
    assert source_of(None, {}, {}).files == ()


def test_a_start_hands_its_source_over_to_its_workers(tmp_path: Path) -> None:
    source = Source((tmp_path / "p.yaml",), {"port": 3})
    assert handed_over(source.hand_over()) == source
    assert handed_over(NO_SOURCE.hand_over()) == handed_over({}) == NO_SOURCE


def test_content_counts_and_neither_names_nor_times(tmp_path: Path) -> None:
    link, token = tmp_path / "p.yaml", tmp_path / "token"
    environment = {"PALIMPSEST_ADMIN_TOKEN_FILE": str(token)}
    for name, text in (("one", "log: {level: info}"), ("same", "log: {level: info}"), ("other", "log: {level: error}")):
        (tmp_path / name).write_text(text)
    source, seen = Source((link,)), []
    for name in ("one", "same", "other"):
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        seen.append(source.content(environment))
    token.write_text("t0ken")
    seen.append(source.content(environment))
    link.unlink()
    seen.append(source.content(environment))
    assert seen[0] == seen[1] and len(set(seen)) == 4


def test_a_file_that_has_become_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.yaml")
    source = Source((tmp_path / "p.yaml",))
    assert source.content({}) == Source((tmp_path / "missing.yaml",)).content({})
    with pytest.raises(PolicyError, match="no longer a regular file"):
        source.load({})


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
