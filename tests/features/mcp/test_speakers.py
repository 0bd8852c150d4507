"""Who may use memory as tools, by the key that is shown."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.credentials import LOCAL
from palimpsest.core.caller.proxy_keys import ProxyKeys, digest_of
from palimpsest.domain import ProxyKey
from palimpsest.features.mcp.speakers import Speakers
from palimpsest.settings.policy import Policy

from tests.core.driving import client_table

SHOWN = [(b"x-api-key", b"plm_one")]


def speakers(**opens: object) -> Speakers:
    key = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", **opens)  # type: ignore[arg-type]
    return Speakers(Policy(), client_table(), ProxyKeys({}, {digest_of(b"plm_one"): key}), b"s" * 32)


def test_a_key_speaks_for_its_tenant_and_reads_only_if_it_is_for_that() -> None:
    speaker = speakers(read_only=True).of(SHOWN)
    assert speaker is not None and (speaker.tenant, speaker.is_read_only) == ("key:acme", True)


@pytest.mark.parametrize("opens", [{"users": ("ada",)}, {"scopes": ("lab",)}])
def test_a_key_for_some_users_or_projects_does_not_as_tools_see_a_whole_tenant(opens: dict[str, object]) -> None:
    assert speakers(**opens).of(SHOWN) is None


def test_a_program_on_this_machine_speaks_for_those_without_a_credential_where_it_is_trusted() -> None:
    here = [(b"host", b"127.0.0.1:8484")]
    trusting = Speakers(Policy(), client_table(), ProxyKeys({}), b"s" * 32, trusts_machine=True)
    speaker = trusting.of(here)
    assert speaker is not None and speaker.tenant == LOCAL
    assert trusting.of([*here, (b"via", b"1.1 gateway")]) is None
    assert Speakers(Policy(), client_table(), ProxyKeys({}), b"s" * 32).of(here) is None


def test_a_key_that_opens_nothing_names_nobody() -> None:
    assert speakers().of([(b"authorization", b"Bearer plm_gone")]) is None
