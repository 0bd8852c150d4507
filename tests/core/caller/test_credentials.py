"""One reading of a request's credentials, for whoever names tenants, opens doors or forwards."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.credentials import forwarded_secrets, hop_by_hop, secret_in, secrets_of
from palimpsest.domain import RawHeaders


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        *(
            (b"Bearer a", b"a"),
            (b"bearer   a ", b"a"),
            (b"a", b"a"),
            (b" a b ", b"a b"),
            (b"Basic YTpi", b"Basic YTpi"),
        ),
        *((b"", b""), (b"  ", b""), (b"Bearer", b""), (b"bearer  ", b""), (b"BASIC ", b""), (b"basic", b"")),
    ],
)
def test_a_scheme_is_no_secret(value: bytes, secret: bytes) -> None:
    assert secret_in(value) == secret


@pytest.mark.parametrize(
    ("headers", "secrets"),
    [
        ([(b"api-key", b"c"), (b"x-api-key", b"b"), (b"authorization", b"Bearer a")], [b"a", b"b", b"c"]),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer z")], [b"a", b"z"]),
        ([(b"authorization", b"Bearer a"), (b"x-api-key", b"a")], [b"a"]),
        ([(b"authorization", b""), (b"api-key", b"c"), (b"cookie", b"d")], [b"c"]),
        ([], []),
    ],
)
def test_every_secret_is_presented_once_in_order(headers: RawHeaders, secrets: list[bytes]) -> None:
    assert secrets_of(headers) == forwarded_secrets(headers) == secrets


def test_what_connection_names_is_presented_and_not_forwarded() -> None:
    headers = [(b"authorization", b"a"), (b"connection", b"close"), (b"connection", b"X-Y , Authorization")]
    headers += [(b"x-api-key", b"b")]
    assert hop_by_hop(headers) == {b"close", b"x-y", b"authorization"}
    assert (secrets_of(headers), forwarded_secrets(headers)) == ([b"a", b"b"], [b"b"])
